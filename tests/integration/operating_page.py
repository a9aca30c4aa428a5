"""The page for operators, as tests read it: its drills' commands, and the order of an upgrade."""

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
_BLOCK = re.compile(r"```\n(.*?)```", re.DOTALL)
_ORDER = re.compile(r"^ +(`[a-z-]+`(?: → `[a-z-]+`)+)$", re.MULTILINE)


def drill(title: str) -> list[list[str]]:
    """The commands of one drill, in their order, as words."""
    _, found, rest = PAGE.read_text().partition(f"### {title}\n")
    assert found, f"the page has no drill {title!r}"
    blocks = _BLOCK.findall(rest.partition("\n### ")[0])
    return [shlex.split(line[2:]) for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def drills() -> set[str]:
    """Titles of all drills that have commands."""
    titles = re.findall(r"^### (.+)$", PAGE.read_text().partition("## Drills\n")[2], re.MULTILINE)
    return {title for title in titles if drill(title)}


def upgrade_order() -> tuple[str, ...]:
    """The services as the page has them replaced."""
    (said,) = _ORDER.findall(PAGE.read_text())
    return tuple(word.strip("` ") for word in said.split("→"))
