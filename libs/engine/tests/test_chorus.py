"""Many threads, one leader, one handing over for each step."""

import asyncio
import threading
import time
from collections.abc import Iterable

import pytest
from weft_engine.adapters import llamacpp_chorus
from weft_engine.adapters.llamacpp_chorus import Chorus
from weft_engine.adapters.llamacpp_voice import Voice

Word = tuple[int, int]


class Room:
    """A chorus whose words are kept, and the threads that sing in it."""

    def __init__(self, voices: int) -> None:
        self.voices = [Voice() for _ in range(voices)]
        self.handed: list[list[Word]] = []
        self.left = 0
        self.empty = asyncio.Event()
        self.chorus: Chorus[tuple[int, int, bool]] = Chorus(self._take)
        self.tokens = [0] * voices
        """tokens that the engine has made for each voice"""
        self.made = threading.Condition()
        self.silent: set[Word] = set()
        """tokens that have no text"""

    def _take(self, said: Iterable[tuple[int, int, bool]]) -> None:
        words: list[Word] = []
        for number, word, last in said:
            words.append((number, word))
            if last:
                self.chorus.leave(self.voices[number])
                self.left += 1
        self.handed.append(words)
        if self.left == len(self.voices):
            self.empty.set()

    def step(self, *numbers: int) -> None:
        """The engine makes one token for each of these voices."""
        with self.made:
            for number in numbers:
                self.tokens[number] += 1
            self.made.notify_all()

    def sing(self, number: int, words: int) -> None:
        """A voice's thread: take each token when it is there, and say it."""
        for word in range(words):
            with self.made:
                assert self.made.wait_for(lambda word=word: self.tokens[number] > word, 20)
            last = word == words - 1
            if last:
                self.chorus.end(self.voices[number], (number, word, last))
            else:
                said = None if (number, word) in self.silent else (number, word, last)
                self.chorus.speak(self.voices[number], said, ends=word == words - 2)

    def start(self, lengths: list[int]) -> list[threading.Thread]:
        threads: list[threading.Thread] = []
        for number, words in enumerate(lengths):
            self.chorus.join(self.voices[number])
            thread = threading.Thread(target=self.sing, args=(number, words), daemon=True)
            threads.append(thread)
            thread.start()
        return threads

    def words_of(self, number: int) -> list[int]:
        return [word for words in self.handed for voice, word in words if voice == number]


async def test_every_word_arrives_once_and_in_order_whatever_the_voices_pace() -> None:
    lengths = [1, 200, 37, 200, 5, 120, 64, 200]
    room = Room(len(lengths))
    threads = room.start(lengths)

    def engine() -> None:
        for i in range(400):
            # some voices miss some steps; the first one, who leads at the beginning, ends at once
            numbers = [n for n, length in enumerate(lengths) if room.tokens[n] < length and (i + n) % 5]
            room.step(*numbers)
            time.sleep(0.0002 if i % 50 else 0.06)  # now and then longer than a lost leader is waited for

    making = threading.Thread(target=engine, daemon=True)
    making.start()
    await asyncio.wait_for(room.empty.wait(), 60)
    for thread in (*threads, making):
        thread.join(5)

    assert [list(range(length)) for length in lengths] == [room.words_of(n) for n in range(len(lengths))]


async def test_a_step_of_all_voices_is_handed_over_together() -> None:
    room = Room(8)
    threads = room.start([20] * 8)
    for _ in range(20):
        room.step(*range(8))
        await asyncio.sleep(0.03)
    await asyncio.wait_for(room.empty.wait(), 20)
    for thread in threads:
        thread.join(5)

    whole = [words for words in room.handed if len({number for number, _ in words}) == 8]
    assert len(whole) > 10, "most steps leave as one; a busy machine may split some"


async def test_a_leader_that_falls_silent_holds_the_others_up_only_for_a_moment() -> None:
    room = Room(3)
    threads = room.start([5, 5, 5])
    room.step(0, 1, 2)
    await asyncio.sleep(0.05)
    # a busy machine may have given the lead up already; then it is anyone who falls silent
    leader = next((n for n, voice in enumerate(room.voices) if voice is room.chorus._leader), 0)
    others = [n for n in range(3) if n != leader]

    for _ in range(4):
        room.step(*others)
    async with asyncio.timeout(10):
        while any(len(room.words_of(n)) < 5 for n in others):
            await asyncio.sleep(0.01)

    assert 1 == len(room.words_of(leader))
    for _ in range(4):
        room.step(leader)
    await asyncio.wait_for(room.empty.wait(), 20)
    for thread in threads:
        thread.join(5)


async def test_an_answers_first_word_waits_for_no_gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(2)
    with monkeypatch.context() as patch:
        patch.setattr(llamacpp_chorus, "GATHER_S", 600.0)
        patch.setattr(llamacpp_chorus, "PAUSE_S", 600.0)
        threads = room.start([2, 2])
        for number in range(2):
            room.step(number)
            async with asyncio.timeout(20):
                while not room.words_of(number):
                    await asyncio.sleep(0.005)

    room.step(0, 1)
    await asyncio.wait_for(room.empty.wait(), 20)
    for thread in threads:
        thread.join(5)
    assert [[0, 1], [0, 1]] == [room.words_of(0), room.words_of(1)]


async def test_an_answers_end_waits_for_no_gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(1)
    with monkeypatch.context() as patch:
        patch.setattr(llamacpp_chorus, "PAUSE_S", 600.0)
        patch.setattr(llamacpp_chorus, "LOOK_S", 600.0)
        threads = room.start([3])
        room.step(0)
        async with asyncio.timeout(20):
            while not room.words_of(0):
                await asyncio.sleep(0.005)
        room.step(0)
        room.step(0)
        await asyncio.wait_for(room.empty.wait(), 20)

    for thread in threads:
        thread.join(5)
    assert [[(0, 0)], [(0, 1), (0, 2)]] == [words for words in room.handed if words]


async def test_words_that_were_held_for_a_fast_step_do_not_wait_for_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(3)
    with monkeypatch.context() as patch:
        patch.setattr(llamacpp_chorus, "PAUSE_S", 600.0)
        threads = room.start([4, 4, 4])
        for _ in range(3):
            room.step(0, 1, 2)
            await asyncio.sleep(0.002)
        async with asyncio.timeout(20):
            while any(len(room.words_of(n)) < 3 for n in range(3)):
                await asyncio.sleep(0.005)

    room.step(0, 1, 2)
    await asyncio.wait_for(room.empty.wait(), 20)
    for thread in threads:
        thread.join(5)
    assert [[0, 1, 2, 3]] * 3 == [room.words_of(n) for n in range(3)]


async def test_a_token_without_text_counts_and_says_nothing() -> None:
    room = Room(2)
    room.silent = {(0, 0), (1, 3)}
    threads = room.start([6, 6])
    for _ in range(6):
        room.step(0, 1)
        await asyncio.sleep(0.012)
    await asyncio.wait_for(room.empty.wait(), 20)
    for thread in threads:
        thread.join(5)

    assert [[1, 2, 3, 4, 5], [0, 1, 2, 4, 5]] == [room.words_of(0), room.words_of(1)]


async def test_a_voice_that_is_counted_wrongly_is_counted_anew() -> None:
    room = Room(3)
    threads = room.start([60, 60, 60])
    wrong = -1
    for word in range(60):
        room.step(0, 1, 2)
        await asyncio.sleep(0.012)
        if word == 5:
            wrong = next(n for n, voice in enumerate(room.voices) if voice is not room.chorus._leader)
            room.voices[wrong].step = -1_000_000  # waves would have it wait for tokens that nobody will make
        if word == 50:
            assert abs((room.voices[wrong].step or room.chorus._step) - room.chorus._step) < 10
    await asyncio.wait_for(room.empty.wait(), 20)
    for thread in threads:
        thread.join(5)

    assert [list(range(60))] * 3 == [room.words_of(n) for n in range(3)]
