"""Many threads, one leader, one handing over for each step."""

import asyncio
import threading
import time
from collections.abc import Iterable

import pytest
from weft_engine.adapters import llamacpp_step_batcher
from weft_engine.adapters.llamacpp_completion_thread import CompletionThread
from weft_engine.adapters.llamacpp_step_batcher import StepBatcher

Output = tuple[int, int]


class Room:
    """A step batcher whose outputs are kept, and the completion threads that feed it."""

    def __init__(self, count: int) -> None:
        self.completion_threads = [CompletionThread() for _ in range(count)]
        self.handed: list[list[Output]] = []
        self.left = 0
        self.empty = asyncio.Event()
        self.batcher: StepBatcher[tuple[int, int, bool]] = StepBatcher(self._take)
        self.tokens = [0] * count
        """tokens that the engine has made for each thread"""
        self.made = threading.Condition()
        self.silent: set[Output] = set()
        """tokens that have no text"""

    def _take(self, outputs: Iterable[tuple[int, int, bool]]) -> None:
        taken: list[Output] = []
        for number, output, last in outputs:
            taken.append((number, output))
            if last:
                self.batcher.leave(self.completion_threads[number])
                self.left += 1
        self.handed.append(taken)
        if self.left == len(self.completion_threads):
            self.empty.set()

    def step(self, *numbers: int) -> None:
        """The engine makes one token for each of these threads."""
        with self.made:
            for number in numbers:
                self.tokens[number] += 1
            self.made.notify_all()

    def run(self, number: int, length: int) -> None:
        """One completion thread: take each token when it is there, and put its output in."""
        for output in range(length):
            with self.made:
                assert self.made.wait_for(lambda output=output: self.tokens[number] > output, 20)
            last = output == length - 1
            if last:
                self.batcher.end(self.completion_threads[number], (number, output, last))
            else:
                made = None if (number, output) in self.silent else (number, output, last)
                self.batcher.put(self.completion_threads[number], made, ends=output == length - 2)

    def start(self, lengths: list[int]) -> list[threading.Thread]:
        threads: list[threading.Thread] = []
        for number, length in enumerate(lengths):
            self.batcher.join(self.completion_threads[number])
            thread = threading.Thread(target=self.run, args=(number, length), daemon=True)
            threads.append(thread)
            thread.start()
        return threads

    def outputs_of(self, number: int) -> list[int]:
        return [output for outputs in self.handed for thread, output in outputs if thread == number]


async def test_every_output_arrives_once_and_in_order_whatever_the_threads_pace() -> None:
    lengths = [1, 200, 37, 200, 5, 120, 64, 200]
    room = Room(len(lengths))
    threads = room.start(lengths)

    def engine() -> None:
        for i in range(400):
            # some threads miss some steps; the first one, who leads at the beginning, ends at once
            numbers = [n for n, length in enumerate(lengths) if room.tokens[n] < length and (i + n) % 5]
            room.step(*numbers)
            time.sleep(0.0002 if i % 50 else 0.06)  # now and then longer than a lost leader is waited for

    making = threading.Thread(target=engine, daemon=True)
    making.start()
    await asyncio.wait_for(room.empty.wait(), 60)
    for thread in (*threads, making):
        thread.join(5)

    assert [list(range(length)) for length in lengths] == [room.outputs_of(n) for n in range(len(lengths))]


async def test_a_step_of_all_threads_is_handed_over_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a machine that may be slow: who was let in is waited for, and the others have time to come
    monkeypatch.setattr(llamacpp_step_batcher, "LATE_S", 1.0)
    monkeypatch.setattr(llamacpp_step_batcher, "GATHER_S", 0.015)
    # when it makes twenty steps of eight threads
    room = Room(8)
    threads = room.start([20] * 8)
    for _ in range(20):
        room.step(*range(8))
        await asyncio.sleep(0.06)
    await asyncio.wait_for(room.empty.wait(), 30)
    for thread in threads:
        thread.join(5)
    # then most leave as one: not the first, which nobody waits with, nor the last two, where nobody rests
    assert sum(len({number for number, _ in outputs}) == 8 for outputs in room.handed) > 10


async def test_a_leader_that_falls_silent_holds_the_others_up_only_for_a_moment() -> None:
    room = Room(3)
    threads = room.start([5, 5, 5])
    room.step(0, 1, 2)
    await asyncio.sleep(0.05)
    # a busy machine may have given the lead up already; then it is anyone who falls silent
    leader = next((n for n, thread in enumerate(room.completion_threads) if thread is room.batcher._leader), 0)
    others = [n for n in range(3) if n != leader]

    for _ in range(4):
        room.step(*others)
    async with asyncio.timeout(30):
        while any(len(room.outputs_of(n)) < 5 for n in others):
            await asyncio.sleep(0.01)

    assert 1 == len(room.outputs_of(leader))
    for _ in range(4):
        room.step(leader)
    await asyncio.wait_for(room.empty.wait(), 30)
    for thread in threads:
        thread.join(5)


async def test_an_answers_first_output_waits_for_no_gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(2)
    with monkeypatch.context() as patch:
        patch.setattr(llamacpp_step_batcher, "GATHER_S", 600.0)
        patch.setattr(llamacpp_step_batcher, "PAUSE_S", 600.0)
        threads = room.start([2, 2])
        for number in range(2):
            room.step(number)
            async with asyncio.timeout(30):
                while not room.outputs_of(number):
                    await asyncio.sleep(0.005)

    room.step(0, 1)
    await asyncio.wait_for(room.empty.wait(), 30)
    for thread in threads:
        thread.join(5)
    assert [[0, 1], [0, 1]] == [room.outputs_of(0), room.outputs_of(1)]


async def test_an_answers_end_waits_for_no_gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(1)
    with monkeypatch.context() as patch:
        patch.setattr(llamacpp_step_batcher, "PAUSE_S", 600.0)
        patch.setattr(llamacpp_step_batcher, "LOOK_S", 600.0)
        threads = room.start([3])
        room.step(0)
        async with asyncio.timeout(30):
            while not room.outputs_of(0):
                await asyncio.sleep(0.005)
        room.step(0)
        room.step(0)
        await asyncio.wait_for(room.empty.wait(), 30)

    for thread in threads:
        thread.join(5)
    assert [[(0, 0)], [(0, 1), (0, 2)]] == [outputs for outputs in room.handed if outputs]


async def test_outputs_that_were_held_for_a_fast_step_do_not_wait_for_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room(3)
    with monkeypatch.context() as patch:
        patch.setattr(llamacpp_step_batcher, "PAUSE_S", 600.0)
        threads = room.start([4, 4, 4])
        for _ in range(3):
            room.step(0, 1, 2)
            await asyncio.sleep(0.002)
        async with asyncio.timeout(30):
            while any(len(room.outputs_of(n)) < 3 for n in range(3)):
                await asyncio.sleep(0.005)

    room.step(0, 1, 2)
    await asyncio.wait_for(room.empty.wait(), 30)
    for thread in threads:
        thread.join(5)
    assert [[0, 1, 2, 3]] * 3 == [room.outputs_of(n) for n in range(3)]


async def test_a_token_without_text_counts_and_makes_no_output() -> None:
    room = Room(2)
    room.silent = {(0, 0), (1, 3)}
    threads = room.start([6, 6])
    for _ in range(6):
        room.step(0, 1)
        await asyncio.sleep(0.012)
    await asyncio.wait_for(room.empty.wait(), 30)
    for thread in threads:
        thread.join(5)

    assert [[1, 2, 3, 4, 5], [0, 1, 2, 4, 5]] == [room.outputs_of(0), room.outputs_of(1)]


async def test_a_thread_that_is_counted_wrongly_is_counted_anew() -> None:
    room = Room(3)
    threads = room.start([60, 60, 60])
    wrong = -1
    for output in range(60):
        room.step(0, 1, 2)
        await asyncio.sleep(0.012)
        if output == 5:
            wrong = next(n for n, thread in enumerate(room.completion_threads) if thread is not room.batcher._leader)
            room.completion_threads[
                wrong
            ].step = -1_000_000  # a flush would have it wait for tokens that nobody will make
        if output == 50:
            async with asyncio.timeout(30):
                while abs((room.completion_threads[wrong].step or room.batcher._step) - room.batcher._step) >= 10:
                    await asyncio.sleep(0.005)
    await asyncio.wait_for(room.empty.wait(), 30)
    for thread in threads:
        thread.join(5)

    assert [list(range(60))] * 3 == [room.outputs_of(n) for n in range(3)]
