"""What an examination finds: one sentence, and what to do where something is wrong. Pure."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "warning", "problem"]
Area = Literal["machine", "state", "process", "mesh", "node", "model"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    area: Area
    name: str
    verdict: Verdict
    says: str
    do: str = ""
    """The remedy; empty where nothing needs one."""


def ok(area: Area, name: str, says: str) -> Finding:
    return Finding(area, name, "ok", says)


def note(area: Area, name: str, says: str, do: str = "") -> Finding:
    """Worth knowing, and nothing is wrong."""
    return Finding(area, name, "note", says, do)


def warning(area: Area, name: str, says: str, do: str) -> Finding:
    """It works, and may soon not."""
    return Finding(area, name, "warning", says, do)


def problem(area: Area, name: str, says: str, do: str) -> Finding:
    """It doesn't work."""
    return Finding(area, name, "problem", says, do)
