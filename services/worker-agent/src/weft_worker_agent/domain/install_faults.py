"""Why an installation failed, for people, and whether another try can be different."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST_CHARACTERS = 1500
_SECRET = re.compile(r"://[^/@\s]+@")
_CONFLICT = "we can conclude that"
_BUILD = "Failed to build"
_COMPILER = re.compile(
    r"CMake Error|\b(?:fatal )?error:|\*\*\* .*Error|undefined reference|cannot find -l", re.IGNORECASE
)
_KILLED = "Killed signal"
_OF_BUILD = 4
"""Lines of a build that are told: the first is what went wrong, the rest mostly follows from it."""
_ABSENT = ("was not found", "were not found", "no version", "no versions", "not be reached", "not be queried")


@dataclass(frozen=True, slots=True)
class InstallFault:
    """What went wrong."""

    reason: str
    permanent: bool = False
    """The recipe itself can't be installed, here or elsewhere."""
    local: bool = False
    """Another try here fails the same way until somebody changes this machine."""
    room: int = 0
    """Bytes that must be free on the disk before another try; 0: it didn't fail for want of room."""


def without_secrets(text: str) -> str:
    """A text without the names and passwords that addresses in it bear."""
    return _SECRET.sub("://***@", text)


def fault_of(engine: str, version: str, status: int, lines: Sequence[str]) -> InstallFault:
    """The fault behind an installer's end, from its last lines."""
    said = [line.strip() for line in lines if line.strip()]
    if any(_BUILD in line for line in said):
        wrong = [line for line in said if _COMPILER.search(line)][:_OF_BUILD]
        words = without_secrets(" ".join(wrong or said[-5:]))
        again = not wrong or _KILLED in words  # what it lacked, an index or memory, may come back
        return InstallFault(f"{engine} {version} could not be built here: {_cut(words)}", local=not again)
    errors = [at for at, line in enumerate(said) if line.startswith("error:")]
    words = " ".join(said[errors[-1] :] if errors else said[-5:])
    how = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    text = without_secrets(words) or f"the installer {how} without a word"
    if status < 0:
        text = f"the installer {how}" + (f"; its last words: {without_secrets(words)}" if words else "")
    permanent = _CONFLICT in words and not any(absent in words for absent in _ABSENT)
    return InstallFault(f"{engine} {version} could not be installed: {_cut(text)}", permanent=permanent)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
