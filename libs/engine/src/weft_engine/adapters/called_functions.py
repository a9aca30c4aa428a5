"""Calls of tools as OpenAI's form has them, whole or in pieces: what a server says, and what vLLM's parsers find."""

from dataclasses import dataclass


class Unreadable(Exception):
    """What came is none of an OpenAI server's answers; the message says why."""


@dataclass(slots=True)
class CalledFunction:
    name: str | None = None
    arguments: str | None = None


@dataclass(slots=True)
class Call:
    index: int | None = None
    function: CalledFunction | None = None
