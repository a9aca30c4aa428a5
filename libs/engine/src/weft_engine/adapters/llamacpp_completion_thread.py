"""One completion thread's part in the step batcher: how far it is, and where it rests."""

import contextlib
import threading
from typing import Final

REST_S: Final = 1.0
"""No thread rests longer, whatever happens."""


class CompletionThread:
    """How far one thread is, and where it rests between two flushes."""

    __slots__ = ("_gate", "begun", "counted_at", "left_at", "probes", "resting", "step", "waits")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        self.resting = False
        self.begun = False
        """its first output was put"""
        self.step: int | None = None
        """the step of its last token, as the step batcher counts; None until the leader tells it"""
        self.counted_at = 0.0
        """when it took that token, if its step is not known"""
        self.left_at = 0.0
        """when it went back for its next token"""
        self.waits = 0
        """tokens in a row that were not there yet"""
        self.probes = False
        """goes on until a token is not there yet, to be counted anew"""

    def rest(self, at_most_s: float = REST_S) -> None:
        """Wait to be let in; called by the thread itself."""
        self.resting = True
        if not self._gate.acquire(timeout=at_most_s):
            self.resting = False

    def let_in(self) -> None:
        """Let the thread go on if it rests."""
        if self.resting:
            self.resting = False
            with contextlib.suppress(RuntimeError):  # it gave up resting just now
                self._gate.release()
