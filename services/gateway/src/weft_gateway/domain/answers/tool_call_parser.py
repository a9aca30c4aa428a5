r"""Reads calls as they come, each on a line `{"name": "…", "arguments": {…}}`, and tells them from what is no call."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_HEAD = re.compile(r'\{\s*"name"\s*:\s*"(?P<name>[^"\\]*)"\s*,\s*"arguments"\s*:\s*')
_OUTSIDE = re.compile(r'"[^"]*"?|\s+')


class ToolCallDelta(NamedTuple):
    """What an answer adds to one of its calls."""

    call: int
    """Which one of the answer's calls, from 0."""
    name: str | None
    """With the call's first piece: the function's."""
    arguments: str


ToolCallDeltas = Sequence[ToolCallDelta]


class ToolCallParser:
    """Feed it an answer piece by piece. What may yet become a call is held back, and never passes as text."""

    __slots__ = ("_begun", "_depth", "_escaped", "_held", "_in_string", "_is_text", "_names", "_or_json", "_whole")

    def __init__(self, names: Sequence[str], *, or_json: bool = False) -> None:
        """`names`: functions that may be called. `or_json`: what begins with a brace may be no call too."""
        self._names = names
        self._or_json = or_json
        self._held = ""
        self._is_text = False
        self._begun = 0
        """Calls whose name is known."""
        self._whole = 0
        """Calls whose arguments have ended."""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    @property
    def called(self) -> bool:
        """A call has begun."""
        return self._begun > 0

    @property
    def cut(self) -> bool:
        """So far, a part of a call lacks."""
        return bool(self._held) or self._begun > self._whole

    def feed(self, piece: str) -> tuple[str, ToolCallDeltas]:
        """What the piece adds: to the text, and to calls."""
        if self._is_text:
            return piece, ()
        found: list[ToolCallDelta] = []
        while piece:
            if self._begun > self._whole:
                arguments, piece = self._arguments(piece)
                if arguments:
                    found.append(ToolCallDelta(self._begun - 1, None, arguments))
                continue
            self._held += piece
            if self._begun:  # what closes a call and what stands between two
                self._held = self._held.lstrip("} \n\r\t")
            head = _HEAD.match(self._held)
            if head is not None and head["name"] in self._names:
                piece, self._held = self._held[head.end() :], ""
                found.append(ToolCallDelta(self._begun, head["name"], ""))
                self._begun += 1
                continue
            if not self._fitting():
                plain, self._held = self._held, ""
                if not self._begun:
                    self._is_text = True
                    return plain, ()
            break
        return "", found

    def rest(self) -> ToolCallDeltas:
        """The answer is over: a call that was cut in its head, if it can be one function's alone."""
        fitting = self._fitting()
        if len(fitting) != 1 or self._or_json:
            return ()
        self._held = ""
        self._begun += 1
        return (ToolCallDelta(self._begun - 1, fitting[0], ""),)

    def _fitting(self) -> list[str]:
        """Functions whose call begins with what is held."""
        if self._held[:1] != "{":
            return []
        bare = _OUTSIDE.sub(lambda found: "" if found[0].isspace() else found[0], self._held)
        return [name for name in self._names if f'{{"name":"{name}","arguments":'.startswith(bare)]

    def _arguments(self, piece: str) -> tuple[str, str]:
        """The part of a piece that belongs to the arguments, up to the brace that closes them; and what follows."""
        if not self._depth:
            piece = piece.lstrip()
        for place, letter in enumerate(piece):
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif letter == "\\":
                    self._escaped = True
                elif letter == '"':
                    self._in_string = False
            elif letter == '"':
                self._in_string = True
            elif letter in "{[":
                self._depth += 1
            elif letter in "}]":
                self._depth -= 1
                if self._depth == 0:
                    self._whole += 1
                    return piece[: place + 1], piece[place + 1 :]
        return piece, ""
