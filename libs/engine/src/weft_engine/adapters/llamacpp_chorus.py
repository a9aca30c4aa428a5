"""Brings the words of many completion threads to the event loop, together.

llama.cpp hands a token over by waking every thread that waits for one, and switching threads is most of what a
token costs outside the model. So here only one thread waits for the next step, the leader. The others rest
outside llama.cpp. When it is time for a frame the leader lets the first of them in, that one the next, and so on:
a wave. By then their tokens are there, so none of them waits, and the last one wakes the loop.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from weft_engine.adapters.llamacpp_voice import REST_S, Voice

GATHER_S: Final = 0.0015
"""After the leader, the others' tokens are there within about this time, and within a quarter of a step."""

STALLS: Final = 5
"""So often within that time the wave is looked at, and helped on where it stands still."""

SHORT_S: Final = 0.0002
"""A wait this short costs more than it saves."""

LATE_S: Final = 0.005
"""Who was let in and has not spoken by then is not waited for."""

PAUSE_S: Final = 0.008
"""Steps that follow each other faster are handed over together: a frame costs more than a token."""

WAITED_S: Final = 0.0004
"""A token that took longer was not there yet when its thread was let in."""

PROBE_WAVES: Final = 8
"""After so many waves one voice is counted anew: a count that is too low would delay its words a little, for good."""

LOOK_S: Final = 0.02
"""How often the loop looks after the leader, and at words that nobody brought."""

LOST_LEADER_S: Final = 0.05
"""When the leader is silent for so long, and for four times its last step, all are let in and another leads."""

now_s = time.monotonic
WordT = TypeVar("WordT")


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
        self._led_at = 0.0
        """when the leader last spoke"""
        self._interval = 0.0
        """the length of its last step"""
        self._new: deque[Voice] = deque()
        """have a token, and it is not clear yet of which step"""
        self._words: deque[WordT] = deque()
        self._told = False
        """the loop knows that there are words"""
        self._waved_at = 0.0
        self._waves = 0
        self._waved_to = 0
        """the step to which the last wave took all voices"""
        self._line: deque[Voice] = deque()
        """who is let in next"""
        self._awaited: set[Voice] = set()
        """of the wave, who has not caught up"""
        self._look: asyncio.TimerHandle | None = None

    def join(self, voice: Voice) -> None:
        """A voice's thread begins. Loop's thread."""
        self._voices[voice] = None
        if self._look is None:
            self._look = self._loop.call_later(LOOK_S, self._look_after)

    def leave(self, voice: Voice) -> None:
        """A voice's thread has ended. Loop's thread."""
        self._voices.pop(voice, None)
        if self._leader is voice:
            leader = self._leader = next((other for other in self._voices if other.begun or other.resting), None)
            if leader is not None:
                leader.step = self._step if leader.step is None else leader.step
                leader.let_in()

    def speak(self, voice: Voice, word: WordT | None, *, tokens: int = 1, ends: bool = False) -> None:
        """Say a word that `tokens` tokens made, None where they have no text, and rest until more are there.

        Called by the voice's thread. `ends`: the last word follows at once, so don't rest.
        """
        at = now_s()
        if word is not None:
            self._words.append(word)
            if not voice.begun:  # someone waits for the answer to begin: that is worth a frame of its own
                voice.begun = True
                if len(self._voices) == 1:
                    self._waved_at = at
                self._tell()
        if self._leader is None:
            self._leader = voice
            voice.step = self._step
        if voice.step is not None:
            voice.step += tokens
        if self._leader is voice:
            self._lead(voice, at, ends=ends)
        elif voice.step is None:
            self._count(voice, at)
        else:
            self._follow(voice, at, ends=ends)
        voice.left_at = now_s()

    def end(self, voice: Voice, word: WordT) -> None:
        """Say the last word; called by the voice's thread."""
        self._words.append(word)
        if voice in self._awaited:
            self._caught_up(voice)
            self._next()
        else:
            self._tell()

    def _lead(self, voice: Voice, at: float, *, ends: bool) -> None:
        """The leader has a token: bring in what the others have, when it is time."""
        before, self._led_at = self._led_at, at
        self._interval = at - before
        if voice.step is not None and voice.step > self._step:
            self._step = voice.step
        while self._new:
            other = self._new.popleft()
            # with this step or with the one before, whichever is nearer
            if other.step is None:
                nearer = at - other.counted_at < other.counted_at - before
                other.step = self._step if nearer else self._step - 1
        alone = len(self._voices) < 2
        if not alone and not ends and self._interval > 4 * SHORT_S:
            voice.rest(min(GATHER_S, self._interval / 4))  # the step is not over: who waits now is woken in vain
        if at - self._waved_at < PAUSE_S:
            return
        if alone or not self._wave(at):
            self._waved_at = at
            self._tell()
        elif not ends:
            self._wait_for_wave(voice)

    def _wait_for_wave(self, leader: Voice) -> None:
        """Let the wave go round before the next step, and get it past who has no token yet."""
        left = -1
        for _ in range(STALLS):
            if not self._awaited:
                return
            if len(self._line) == left:
                self._next()
            left = len(self._line)
            leader.rest(LATE_S / STALLS)
        if self._awaited:
            while self._line:
                self._next()
            self._tell()

    def _follow(self, voice: Voice, at: float, *, ends: bool) -> None:
        """A voice that was let in has a token."""
        waited = at - voice.left_at > WAITED_S
        voice.waits = voice.waits + 1 if waited else 0
        if waited and (voice.probes or voice.waits == 2):  # once may be the machine's doing
            self._caught_up(voice)
            self._count(voice, at)
        elif not ends and (voice.step or 0) >= self._waved_to:
            self._caught_up(voice)
            if not voice.probes:
                self._rest(voice)

    def _count(self, voice: Voice, at: float) -> None:
        """A voice has a token as soon as it was made: rest until the leader has told with which step."""
        voice.step = None
        voice.waits = 0
        voice.probes = False
        voice.counted_at = at
        self._new.append(voice)
        self._rest(voice)

    def _rest(self, voice: Voice) -> None:
        self._next()
        if self._leader is not voice:
            voice.rest()

    def _wave(self, at: float) -> bool:
        """Let in who is behind, one after another; whether there is anyone."""
        step = self._step
        behind = [
            voice for voice in list(self._voices) if voice.resting and voice.step is not None and voice.step < step
        ]
        self._waved_at = at
        self._waved_to = step
        self._awaited = set(behind)
        self._line = deque(behind)
        self._waves += 1
        if behind and self._waves % PROBE_WAVES == 0:
            behind[self._waves // PROBE_WAVES % len(behind)].probes = True
        self._next()
        return bool(behind)

    def _next(self) -> None:
        """Let in the next of the wave."""
        with contextlib.suppress(IndexError):
            self._line.popleft().let_in()

    def _caught_up(self, voice: Voice) -> None:
        """A voice has said all that the wave is to bring."""
        self._awaited.discard(voice)
        if not self._awaited:
            self._tell()
            leader = self._leader
            if leader is not None:
                leader.let_in()

    def _tell(self) -> None:
        """Have the loop hand over what was said."""
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        """Hand over what was said. Who speaks from now on tells the loop again."""
        self._told = False
        self._hand_over(self._taken())

    def _taken(self) -> Iterable[WordT]:
        take = self._words.popleft
        while True:
            try:
                word = take()
            except IndexError:
                return
            yield word

    def _look_after(self) -> None:
        """Now and then: words that wait for a step which takes long, a leader that fell silent."""
        self._look = self._loop.call_later(LOOK_S, self._look_after) if self._voices else None
        now = now_s()
        if self._words:
            self._finish()
        if self._waved_to < self._step and now - self._waved_at > LOOK_S:
            self._wave(now)
        silent = now - max(self._led_at, self._waved_at)
        if self._leader is not None and silent > max(LOST_LEADER_S, 4 * min(self._interval, REST_S)):
            self._leader = None  # the next to speak leads
            for voice in self._voices:
                voice.let_in()
