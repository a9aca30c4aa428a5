"""A unit's text, and whether a file is one that was made here and is as it was made."""

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

_MARK = "# Made by `weft install`, which makes it anew; your own lines belong into `systemctl edit`. Digest: "
_MARKED = re.compile(rf"{re.escape(_MARK)}([0-9a-f]{{64}})\n")
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./${}-]+")
_PATH = re.compile(r"[A-Za-z0-9_@+=./-]+")
_RELEASE = re.compile(r"/versions/[0-9a-f]{12}/venv/bin/python")
"""As `weft_embedded.bundle`'s scripts lay them out."""
_OWN = "X-Weft"
"""A section that systemd passes over."""

Lines = Sequence[tuple[str, str]]


class BadWord(ValueError):
    """A text that can't stand in a command of a unit."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit, by sections in order."""

    name: str
    sections: tuple[tuple[str, Lines], ...]

    def text(self) -> str:
        """The file, which bears the digest of itself."""
        parts = ["\n".join((f"[{name}]", *(f"{key}={value}" for key, value in lines))) for name, lines in self.sections]
        return marked("\n\n".join(parts) + "\n")


def marked(body: str) -> str:
    """A text that says that it was made here."""
    return f"{_MARK}{hashlib.sha256(body.encode()).hexdigest()}\n{body}"


def made_here(text: str) -> bool:
    """Whether a file was made here, edited since or not."""
    return _MARKED.match(text) is not None


def as_made(text: str) -> bool:
    """Whether a file was made here and nobody has edited it."""
    found = _MARKED.match(text)
    return found is not None and hashlib.sha256(text[found.end() :].encode()).hexdigest() == found[1]


def of_another_release(before: str, text: str) -> bool:
    """Whether two texts of a unit differ in nothing but the release that they run, each in a folder of its own."""
    one, other = (_RELEASE.sub("", _MARKED.sub("", each, count=1)) for each in (before, text))
    return before != text and one == other


def remembering(**said: str) -> tuple[str, Lines]:
    """A section for what the removal needs to know."""
    return _OWN, tuple(said.items())


def remembered(text: str, key: str) -> str | None:
    """What such a section says."""
    found = re.search(rf"^\[{_OWN}\]\n(?:.+\n)*?{re.escape(key)}=(.*)$", text, re.MULTILINE)
    return found[1] if found is not None else None


def command(*words: str) -> str:
    """Words as the value of `ExecStart`. Raises BadWord."""
    return " ".join(map(word, words))


def word(text: str) -> str:
    """One word, quoted where it must be; `${NAME}` at its start stays a variable of systemd's. Raises BadWord."""
    if not text or any(ord(each) < 32 or ord(each) == 127 for each in text):
        raise BadWord(f"{text!r} can't stand in a unit")
    variable = re.match(r"\$\{[A-Z_]+\}", text)
    start, rest = (variable[0], text[variable.end() :]) if variable is not None else ("", text)
    rest = rest.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(start + rest):
        return start + rest
    quoted = rest.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{start}{quoted}"'


def path(text: str) -> str:
    """A path as the value of a setting, which knows no quotes. Raises BadWord."""
    if not _PATH.fullmatch(text):
        raise BadWord(f"{text!r} can't stand in a unit: choose a path of letters, digits and . _ - + @ =")
    return text


def words(value: str) -> list[str]:
    """What systemd makes of a command that `command` wrote, but for its variables."""
    return [each.replace("%%", "%").replace("$$", "$") for each in shlex.split(value)]
