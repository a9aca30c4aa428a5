"""The last lines of an engine's log, as far as they may stand in the event log: few, short, and nothing to be hidden.

Neither secrets nor prompts may get there. An adapter writes none; but an engine's own library may quote what it
broke on. So what looks like a key is masked, quoted text that is longer than a name is left out, and of the host's
own log lines only warnings and errors are kept, without their fields. What remains is bounded; the whole log stays on
the worker (`weft logs`).
"""

import json
import re
from collections.abc import Iterable
from typing import cast

MOST_LINES = 20
MOST_BYTES = 2048
LONGEST = 200
"""Characters of a line."""
LONGEST_QUOTE = 60
"""Characters of a quoted text: names and paths are shorter, prompts are longer."""

_MASKS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), r"\1 …"),
    (
        re.compile(
            r"(?i)\b([\w-]*(?:api_?key|token|secret|passw(?:or)?d|authorization)\b[\"']?\s*[=:]\s*)[\"']?[^\s\"',;]+"
        ),
        r"\1…",
    ),
    (re.compile(r"\b(?:sk|hf|gh[opsu]|xox[abp]|AKIA|glpat)[-_]?[A-Za-z0-9_-]{12,}"), "…"),
    (re.compile(r"://[^/\s:@]+:[^/\s@]+@"), "://…@"),
    (re.compile(r"\b(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[A-Za-z0-9_-]{40,}\b"), "…"),
    (re.compile(rf"(['\"`])(?:(?!\1).){{{LONGEST_QUOTE + 1},}}\1"), r"\1…\1"),
)


def telling(line: str) -> str:
    """A line of stderr, masked; of a host's own log lines what went wrong, empty where they tell of nothing wrong."""
    return masked(_words_of(line.strip()))


def last_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Those that may stand in a fact, oldest first."""
    told = [text for line in lines if (text := telling(line))][-MOST_LINES:]
    kept: list[str] = []
    left = MOST_BYTES
    for line in reversed(told):
        left -= len(line.encode()) + 1
        if left < 0:
            break
        kept.append(line)
    return tuple(reversed(kept))


def masked(text: str) -> str:
    """A text without what looks like a key or like somebody's words, and cut."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _words_of(line: str) -> str:
    try:
        parsed: object = json.loads(line)
    except ValueError:
        return line
    if not isinstance(parsed, dict):
        return line
    fields = cast("dict[str, object]", parsed)
    if fields.get("level") in ("debug", "info"):
        return ""
    said = str(fields.get("reason") or fields.get("event") or "")
    broke = str(fields.get("exception") or "").strip().rpartition("\n")[2]
    return f"{said}: {broke}" if broke else said or line
