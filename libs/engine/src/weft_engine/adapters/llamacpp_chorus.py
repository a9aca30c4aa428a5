"""Brings the words of many completion threads to the event loop, once for each engine step.

llama.cpp hands a token over by waking every thread that waits for one: with 32 streams that is 50 wakes a token,
a quarter of all CPU time. So here only one thread waits for the next step, the leader. The others rest outside
llama.cpp when they have as many tokens as the leader, and are let in again when it has spoken: by then their
tokens are there too.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

GATHER_S: Final = 0.0015
"""After the leader, the others' tokens are there within about this time."""

LATE_S: Final = 0.005
"""Who was let in and has not spoken by then is not waited for."""

PAUSE_S: Final = 0.004
"""Steps that follow each other faster are handed over together: a frame costs more than a token."""

LOST_LEADER_S: Final = 0.05
"""When the leader is silent for so long, and for four times its last step, all are let in and another leads."""

REST_S: Final = 1.0
"""No thread rests longer, whatever happens."""

WordT = TypeVar("WordT")


class Voice:
    """One thread's part: how far it is, and where it rests between two steps."""

    __slots__ = ("_gate", "resting", "step")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        self.resting = False
        self.step: int | None = None
        """the step of its last word, as the chorus counts; None before its first"""

    def rest(self) -> None:
        """Wait to be let in; called by the voice's own thread."""
        self.resting = True
        if not self._gate.acquire(timeout=REST_S):
            self.resting = False

    def let_in(self) -> None:
        """Let the voice go on if it rests."""
        if self.resting:
            self.resting = False
            with contextlib.suppress(RuntimeError):  # it gave up resting just now
                self._gate.release()


class Chorus(Generic[WordT]):
    """Collects words from voices' threads; hands them over together on the loop's thread.

    Fields that the threads touch too are single values: each change is one operation under the interpreter's
    lock, and a change that is missed costs a timer's wait, never a word.
    """

    def __init__(self, hand_over: Callable[[Iterable[WordT]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._hand_over = hand_over
        self._voices: dict[Voice, None] = {}
        self._leader: Voice | None = None
        self._step = 0
        self._words: deque[WordT] = deque()
        self._awake = False
        self._enough = 0
        """words that make it worth to hand over before anyone is late; 0: nobody was let in"""
        self._hurry = False
        """someone said a last word: nobody waits for the next step to hear that an answer is complete"""
        self._handed_over = 0.0
        self._interval = 0.0
        self._late: asyncio.TimerHandle | None = None
        self._lost: asyncio.TimerHandle | None = None

    def join(self, voice: Voice) -> None:
        """A voice's thread begins. Loop's thread."""
        if not self._voices:
            self._handed_over = self._loop.time() - PAUSE_S  # the quiet before is no step's length
        self._voices[voice] = None

    def leave(self, voice: Voice) -> None:
        """A voice's thread has ended. Loop's thread."""
        self._voices.pop(voice, None)
        if self._leader is voice:
            self._leader = next((other for other in self._voices if other.resting), None)
            if self._leader is not None:
                self._leader.let_in()

    def speak(self, voice: Voice, word: WordT, *, last: bool) -> None:
        """Say a word and rest until the next step; called by the voice's thread."""
        self._words.append(word)
        first = voice.step is None
        if last:
            self._hurry = True
        if self._leader is None and not last:
            self._leader = voice
        step = self._step if voice.step is None else voice.step + 1
        if self._leader is voice and step > self._step:
            self._step = step
        voice.step = step
        if first and not last:  # someone waits for the answer to begin: that is worth a frame of its own
            self._loop.call_soon_threadsafe(self._begin)
        elif not self._awake:
            self._awake = True
            self._loop.call_soon_threadsafe(self._gather)
        elif 0 < self._enough <= len(self._words):
            self._enough = 0
            self._loop.call_soon_threadsafe(self._finish)
        if not last and self._leader is not voice and step >= self._step:
            voice.rest()

    def _begin(self) -> None:
        """A voice has said its first word: hand over what was said, and let the step that is gathered go on."""
        said = len(self._words)
        if self._enough:
            self._enough = max(1, self._enough - said)
        self._hand_over(self._taken())
        self._watch()

    def _behind(self) -> list[Voice]:
        """Those that rest and have said less than the leader."""
        return [voice for voice in self._voices if voice.resting and (voice.step or 0) < self._step]

    def _gather(self) -> None:
        """The first of a step has spoken: give the others a moment."""
        wait = 0.0 if self._hurry else self._handed_over + PAUSE_S - self._loop.time()
        if self._behind() or len(self._words) < len(self._voices):
            wait = max(wait, GATHER_S)
        if wait > 0:
            self._loop.call_later(wait, self._let_in)
        else:
            self._finish()

    def _let_in(self) -> None:
        """The tokens of those behind are there: let them take them."""
        behind = self._behind()
        if not behind:
            self._finish()
            return
        self._late = self._loop.call_later(LATE_S, self._finish)
        self._enough = len(self._words) + sum(self._step - (voice.step or 0) for voice in behind)
        for voice in behind:
            voice.let_in()

    def _finish(self) -> None:
        """Hand over what was said. A voice that speaks from now on wakes the loop again."""
        self._enough = 0
        if self._late is not None:
            self._late.cancel()
            self._late = None
        now = self._loop.time()
        self._interval = now - self._handed_over
        self._handed_over = now
        self._hurry = False
        self._awake = False
        self._hand_over(self._taken())
        self._watch()

    def _watch(self) -> None:
        """Look after the leader while there is one."""
        if self._lost is not None:
            self._lost.cancel()
        lost_after = max(LOST_LEADER_S, 4 * min(self._interval, REST_S))
        self._lost = self._loop.call_later(lost_after, self._let_all_in) if self._voices else None

    def _taken(self) -> Iterable[WordT]:
        take = self._words.popleft
        while True:
            try:
                word = take()
            except IndexError:
                return
            yield word

    def _let_all_in(self) -> None:
        self._lost = None
        self._leader = None  # the next to speak leads
        for voice in self._voices:
            voice.let_in()
        self._watch()
