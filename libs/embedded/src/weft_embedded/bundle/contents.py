"""What a bundle consists of, and a list of it that names each file's digest. The list is one of `sha256sum`."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SUMS = "SHA256SUMS"
ABOUT = "about"
LOCK, TOOL_LOCK = "requirements.lock", "requirements-tool.lock"
OWN, OTHERS, MODELS = "own", "others", "models"
"""Folders: wheels of Weft's own, those of other people that it stands on, models."""
INSTALL = "install"
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_][A-Za-z0-9._+-]*)*)")
_BLOCK = 1 << 20


class BadBundle(Exception):
    """A folder is no bundle, or not as it was made; the message is a sentence with the file's name."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One file of a bundle."""

    name: str
    digest: str


def digest_of(file: Path) -> str:
    """The SHA-256 of a file, in hex."""
    found = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def sums(folder: Path, *, but: Iterable[str] = (SUMS,)) -> str:
    """The list of all files below a folder, in order."""
    left_out = set(but)
    names = sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file())
    return "".join(f"{digest_of(folder / name)}  {name}\n" for name in names if name not in left_out)


def listed(folder: Path) -> tuple[Listed, ...]:
    """What a bundle says that it holds. Raises BadBundle."""
    try:
        lines = (folder / SUMS).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise BadBundle(f"{folder} is no bundle of Weft's: it has no {SUMS} that can be read") from None
    found: list[Listed] = []
    for line in lines:
        matched = _LINE.fullmatch(line)
        if matched is None:
            raise BadBundle(f"{folder / SUMS}: {line[:100]!r} names no file")
        found.append(Listed(matched[2], matched[1]))
    return tuple(found)


def checked(folder: Path, *, but: str | None = None) -> tuple[Listed, ...]:
    """The same, once every file was read and is as the list says. Raises BadBundle that names the first that isn't.

    `but`: names that begin so are left out, unread.
    """
    found = tuple(each for each in listed(folder) if but is None or not each.name.startswith(but))
    for each in found:
        file = folder / each.name
        if file.is_symlink() or not file.is_file():
            raise BadBundle(f"{file} is missing: get the bundle anew")
        if digest_of(file) != each.digest:
            raise BadBundle(f"{file} is not the file that was bundled: get the bundle anew")
    return found
