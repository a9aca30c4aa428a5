"""Cuts a token stream at the first stop string, holding back what may become one."""

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

TokenT = TypeVar("TokenT")
Piece = tuple[str, Sequence[TokenT]]
"""A piece of text and the tokens that make it, mostly one."""


class StopScanner(Generic[TokenT]):
    """Feed it pieces; what it releases is whole pieces, so text and tokens always belong together."""

    def __init__(self, stops: Sequence[str], *, spare_json: bool = False) -> None:
        """`spare_json`: what begins with a brace is not looked at."""
        self._stops = [stop for stop in stops if stop]
        self._undecided = spare_json
        self._held: deque[Piece[TokenT]] = deque()
        self._text = ""
        self.stopped = False
        """a stop string was met; nothing more is to be fed"""

    def feed(self, piece: Piece[TokenT]) -> Piece[TokenT]:
        """Take one piece; answer the text that is safe to send, and its tokens.

        At a stop string the text before it is answered, with the tokens of all pieces that hold some of it.
        """
        if not self._stops:
            return piece
        if self._undecided and piece[0]:
            self._undecided = False
            if piece[0].startswith("{"):
                self._stops = []
                return piece
        self._held.append(piece)
        self._text += piece[0]
        found = [at for stop in self._stops if (at := self._text.find(stop)) >= 0]
        if found:
            self.stopped = True
            return self._release(min(found), cut=True)
        return self._release(len(self._text) - self._possible_start(), cut=False)

    def rest(self) -> Piece[TokenT]:
        """What is still held, at the end of the stream."""
        return self._release(len(self._text), cut=False)

    def _possible_start(self) -> int:
        """Length of the longest end of the text that begins a stop string."""
        longest = max((len(stop) for stop in self._stops), default=0) - 1
        for length in range(min(longest, len(self._text)), 0, -1):
            tail = self._text[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0

    def _release(self, end: int, *, cut: bool) -> Piece[TokenT]:
        """Release the pieces that end by `end`; with `cut` also the beginning of one that goes beyond."""
        texts: list[str] = []
        tokens: list[TokenT] = []
        position = 0
        while self._held:
            text, piece_tokens = self._held[0]
            if position + len(text) > end:
                if cut and position < end:
                    texts.append(text[: end - position])
                    tokens.extend(piece_tokens)
                break
            self._held.popleft()
            texts.append(text)
            tokens.extend(piece_tokens)
            position += len(text)
        self._text = self._text[position:]
        return "".join(texts), tokens
