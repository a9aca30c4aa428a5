"""Brings the outputs of many completion threads to the event loop, together.

llama.cpp hands a token over by waking every thread that waits for one, and switching threads is most of what a
token costs outside the model. So here only one thread waits for the next step, the leader. The others rest
outside llama.cpp. When it is time for a frame, the leader begins a flush: it lets the first of them in, that one the
next, and so on. By then their tokens are there, so none of them waits, and the last one wakes the loop.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from weft_engine.adapters.llamacpp_completion_thread import REST_S, CompletionThread

GATHER_S: Final = 0.0015
"""After the leader, the others' tokens are there within about this time, and within a quarter of a step."""

STALLS: Final = 5
"""How often the leader looks at a flush that is under way, and helps it on where it stands still."""

SHORT_S: Final = 0.0002
"""A wait this short costs more than it saves, in seconds."""

LATE_S: Final = 0.005
"""A thread that was let in and has put no output by then is not waited for, in seconds."""

PAUSE_S: Final = 0.008
"""Steps that follow each other faster are handed over together: a frame costs more than a token."""

WAITED_S: Final = 0.0004
"""A token that took longer was not there yet when its thread was let in."""

PROBE_FLUSHES: Final = 8
"""After so many flushes one thread's step is found anew: one that is too low would delay its outputs for good."""

LOOK_S: Final = 0.02
"""How often the loop looks after the leader, and at outputs of which no thread has told it."""

LOST_LEADER_S: Final = 0.05
"""When the leader is silent for so long, and for four times its last step, all are let in and another leads."""

now_s = time.monotonic
OutputT = TypeVar("OutputT")


class StepBatcher(Generic[OutputT]):
    """Collects the outputs of completion threads, and hands them over together on the loop's thread.

    Fields that the threads touch too are single values: each change is one operation under the interpreter's
    lock, and a change that is missed costs a timer's wait, never an output.
    """

    def __init__(self, hand_over: Callable[[Iterable[OutputT]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._hand_over = hand_over
        self._threads: dict[CompletionThread, None] = {}
        self._leader: CompletionThread | None = None
        self._step = 0
        self._led_at = 0.0
        """when the leader last put an output"""
        self._interval = 0.0
        """the length of its last step"""
        self._new: deque[CompletionThread] = deque()
        """threads that have a token of which the step is not known yet"""
        self._outputs: deque[OutputT] = deque()
        self._told = False
        """whether the loop knows that there are outputs"""
        self._lying: OutputT | None = None
        """the first of the outputs when the loop last looked at them"""
        self._flushed_at = 0.0
        self._flushes = 0
        self._flushed_to = 0
        """the step to which the last flush took all threads"""
        self._line: deque[CompletionThread] = deque()
        """threads that the flush lets in next"""
        self._awaited: set[CompletionThread] = set()
        """threads of the flush that have not caught up"""
        self._look: asyncio.TimerHandle | None = None

    def join(self, thread: CompletionThread) -> None:
        """A completion thread begins. Call it on the loop's thread."""
        self._threads[thread] = None
        if self._look is None:
            self._look = self._loop.call_later(LOOK_S, self._look_after)

    def leave(self, thread: CompletionThread) -> None:
        """A completion thread has ended. Call it on the loop's thread."""
        self._threads.pop(thread, None)
        if self._leader is thread:
            leader = self._leader = next((other for other in self._threads if other.begun or other.resting), None)
            if leader is not None:
                leader.step = self._step if leader.step is None else leader.step
                leader.let_in()

    def put(self, thread: CompletionThread, output: OutputT | None, *, tokens: int = 1, ends: bool = False) -> None:
        """Take an output that `tokens` tokens made, None where they have no text; return when more tokens are there.

        Called by the completion thread itself. `ends`: its last output follows at once, so don't rest.
        """
        at = now_s()
        if output is not None:
            self._outputs.append(output)
            if not thread.begun:  # someone waits for the answer to begin: that is worth a frame of its own
                thread.begun = True
                if len(self._threads) == 1:
                    self._flushed_at = at
                self._tell()
        if self._leader is None:
            self._leader = thread
            thread.step = self._step
        if thread.step is not None:
            thread.step += tokens
        if self._leader is thread:
            self._lead(thread, at, ends=ends)
        elif thread.step is None:
            self._count(thread, at)
        else:
            self._follow(thread, at, ends=ends)
        thread.left_at = now_s()

    def end(self, thread: CompletionThread, output: OutputT) -> None:
        """Take the last output; called by the completion thread itself."""
        self._outputs.append(output)
        if thread in self._awaited:
            self._caught_up(thread)
            self._next()
        else:
            self._tell()

    def _lead(self, thread: CompletionThread, at: float, *, ends: bool) -> None:
        """The leader has a token: bring in what the others have, when it is time."""
        before, self._led_at = self._led_at, at
        self._interval = at - before
        if thread.step is not None and thread.step > self._step:
            self._step = thread.step
        while self._new:
            other = self._new.popleft()
            # with this step or with the one before, whichever is nearer
            if other.step is None:
                nearer = at - other.counted_at < other.counted_at - before
                other.step = self._step if nearer else self._step - 1
        alone = len(self._threads) < 2
        if not alone and not ends and self._interval > 4 * SHORT_S:
            thread.rest(min(GATHER_S, self._interval / 4))  # the step is not over: who waits is woken in vain
        if at - self._flushed_at < PAUSE_S:
            return
        if alone or not self._flush(at):
            self._flushed_at = at
            self._tell()
        elif not ends:
            self._wait_for_flush(thread)

    def _wait_for_flush(self, leader: CompletionThread) -> None:
        """Let the flush go round before the next step, and get it past threads that have no token yet."""
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

    def _follow(self, thread: CompletionThread, at: float, *, ends: bool) -> None:
        """A thread that was let in has a token."""
        waited = at - thread.left_at > WAITED_S
        thread.waits = thread.waits + 1 if waited else 0
        if waited and (thread.probes or thread.waits == 2):  # once may be the machine's doing
            self._caught_up(thread)
            self._count(thread, at)
        elif not ends and (thread.step or 0) >= self._flushed_to:
            self._caught_up(thread)
            if thread.probes:
                self._next()  # it goes on alone
            else:
                self._rest(thread)

    def _count(self, thread: CompletionThread, at: float) -> None:
        """A thread has a token as soon as it was made: rest until the leader has told with which step."""
        thread.step = None
        thread.waits = 0
        thread.probes = False
        thread.counted_at = at
        self._new.append(thread)
        self._rest(thread)

    def _rest(self, thread: CompletionThread) -> None:
        self._next()
        if self._leader is not thread:
            thread.rest()

    def _flush(self, at: float) -> bool:
        """Let in the threads that are behind, one after another; whether there are any."""
        step = self._step
        behind = [
            thread
            for thread in list(self._threads)
            if thread.resting and thread.step is not None and thread.step < step
        ]
        self._flushed_at = at
        self._flushed_to = step
        self._awaited = set(behind)
        self._line = deque(behind)
        self._flushes += 1
        if behind and self._flushes % PROBE_FLUSHES == 0:
            behind[self._flushes // PROBE_FLUSHES % len(behind)].probes = True
        self._next()
        return bool(behind)

    def _next(self) -> None:
        """Let in the next of the flush."""
        with contextlib.suppress(IndexError):
            self._line.popleft().let_in()

    def _caught_up(self, thread: CompletionThread) -> None:
        """A thread has put all that the flush is to bring."""
        self._awaited.discard(thread)
        if not self._awaited:
            self._tell()
            leader = self._leader
            if leader is not None:
                leader.let_in()

    def _tell(self) -> None:
        """Have the loop hand over the outputs."""
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        """Hand over the outputs. A thread that puts one from now on tells the loop again."""
        self._told = False
        self._hand_over(self._taken())

    def _taken(self) -> Iterable[OutputT]:
        take = self._outputs.popleft
        while True:
            try:
                output = take()
            except IndexError:
                return
            yield output

    def _look_after(self) -> None:
        """See now and then to outputs that wait for a step which takes long, and to a leader that fell silent."""
        self._look = self._loop.call_later(LOOK_S, self._look_after) if self._threads else None
        now = now_s()
        first = self._outputs[0] if self._outputs else None
        if first is not None and first is self._lying:  # a younger one may be of a step that is being gathered
            self._finish()
        self._lying = first
        if self._flushed_to < self._step and now - self._flushed_at > LOOK_S:
            self._flush(now)
        silent = now - max(self._led_at, self._flushed_at)
        if self._leader is not None and silent > max(LOST_LEADER_S, 4 * min(self._interval, REST_S)):
            self._leader = None  # the next to put an output leads
            for thread in self._threads:
                thread.let_in()
