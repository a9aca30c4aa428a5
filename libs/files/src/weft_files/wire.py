"""A connection's bytes as they come, counted and timed: silence ends it, a slow drip ends it, a flood ends it."""

import io
import socket
import time
from collections.abc import Callable
from typing import Any

from weft_files.bounds import Bounds
from weft_files.faults import Cut, Refused


class Wire(io.RawIOBase):
    """What an HTTP parser reads from. Only time spent waiting for the other side counts against it."""

    def __init__(self, connection: socket.socket, bounds: Bounds, moved: Callable[[int], None]) -> None:
        """`moved` is told of the bytes of bodies as they come."""
        self._socket = connection
        self._bounds = bounds
        self._moved = moved
        self._until: float | None = None
        self._left = 0
        self._waited = 0.0
        self._came = 0
        self._wait = -1.0

    def begin_head(self) -> None:
        """From now on: one answer's head, within its time and size."""
        self._until = time.monotonic() + self._bounds.answer
        self._left = self._bounds.most_head
        self._wait = -1.0  # the request was sent under another

    def begin_body(self, most: int) -> None:
        """From now on: a body of at most `most` bytes, with a sixteenth for framing, and as fast as `least`."""
        self._until = None
        self._left = most + most // 16 + self._bounds.most_head
        self._waited, self._came = 0.0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if self._left <= 0:
            raise Refused("sends more around the file than in it")
        began = time.monotonic()
        wait = self._bounds.silence
        if self._until is not None:
            wait = min(wait, self._until - began)
            if wait <= 0:
                raise Cut(f"gave no answer within {self._bounds.answer:g} s")
        if wait != self._wait:  # each setting is a call of the system
            self._wait = wait
            self._socket.settimeout(wait)
        try:
            came = self._socket.recv_into(buffer)
        except TimeoutError:
            if self._until is not None and time.monotonic() >= self._until:
                raise Cut(f"gave no answer within {self._bounds.answer:g} s") from None
            raise Cut(f"was silent for {wait:g} s") from None
        self._left -= came
        if self._until is None:
            self._moved(came)
            self._hold_pace(came, time.monotonic() - began)
        return came

    def _hold_pace(self, came: int, waited: float) -> None:
        self._came += came
        self._waited += waited
        if self._waited >= self._bounds.window:
            if self._came < self._bounds.least * self._waited:
                raise Cut(f"sent {self._came} bytes in {self._waited:.0f} s: want {self._bounds.least} a second")
            self._waited, self._came = 0.0, 0
