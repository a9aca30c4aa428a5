r"""Reads `{"name": "…", "arguments": {…}}` as it comes, and tells it from text, which begins otherwise."""

import json
import re

_HEAD = re.compile(r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*')


class CallReader:
    """Feed it an answer piece by piece."""

    __slots__ = ("_depth", "_escaped", "_held", "_in_string", "_is_text", "complete", "name")

    def __init__(self) -> None:
        self.name: str | None = None
        """What is called, as soon as it is known."""
        self.complete = False
        """The call's arguments are whole."""
        self._held = ""
        self._is_text = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, piece: str) -> tuple[str, str]:
        """What the piece adds: to the text, to the call's arguments."""
        if self._is_text:
            return piece, ""
        if self.name is None:
            self._held += piece
            if self._held and self._held[0] != "{":
                self._is_text = True
                return self.rest(), ""
            found = _HEAD.match(self._held)
            if found is None:
                return "", ""
            self.name = str(json.loads(found[1]))
            piece, self._held = self._held[found.end() :], ""
        return "", self._arguments(piece)

    def rest(self) -> str:
        """What was begun as a call and ended before anything was called."""
        rest, self._held = self._held, ""
        return rest

    def _arguments(self, piece: str) -> str:
        """The part of a piece that belongs to the arguments: up to the brace that closes them."""
        if self.complete:
            return ""
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
                    self.complete = True
                    return piece[: place + 1]
        return piece
