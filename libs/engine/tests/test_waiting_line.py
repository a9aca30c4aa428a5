"""The line before an engine: its order, its bounds, and how one leaves it."""

import asyncio
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Ending, RequestRefused, Ticket
from weft_engine.canary import Unheard
from weft_engine.waiting_line import CallLine, RequestLine

Move = tuple[Literal["enter", "leave", "cancel"], int]
MOVES = st.lists(st.tuples(st.sampled_from(["enter", "enter", "leave", "cancel"]), st.integers(0, 7)), max_size=60)


class Seen:
    """A line whose engine notes who was started, with what a reader of its rules expects of it."""

    def __init__(self, places: int, most_waiting: int, *, engine_queues: bool = False) -> None:
        self.started: list[int] = []
        self.line: RequestLine[int] = RequestLine(
            places, most_waiting, self.started.append, engine_queues=engine_queues
        )
        self.places, self.most = places, places + most_waiting
        self.tickets: dict[int, Ticket] = {}
        self.entered: list[int] = []
        """Those inside, in the order in which they came."""

    def enter(self, number: int) -> None:
        """One more comes, and is refused exactly where the line is full."""
        ticket = Ticket(number, Unheard())
        if len(self.entered) < self.most:
            self.line.enter(ticket, number)
            self.entered.append(number)
            self.tickets[number] = ticket
        else:
            with pytest.raises(RequestRefused, match="requests wait already") as refused:
                self.line.enter(ticket, number)
            assert pb.FAULT_BUSY == refused.value.fault

    def runs(self, number: int) -> bool:
        """Whether it was started."""
        return number in self.started

    def over(self, number: int) -> None:
        """It is inside no more."""
        self.entered.remove(number)
        self.tickets.pop(number)


@given(moves=MOVES, places=st.integers(1, 3), most_waiting=st.integers(0, 3), engine_queues=st.booleans())
def test_whatever_comes_and_goes_the_line_keeps_its_order_and_its_bounds(
    moves: list[Move], places: int, most_waiting: int, engine_queues: bool
) -> None:
    seen = Seen(places, most_waiting, engine_queues=engine_queues)
    came: list[int] = []
    dropped: set[int] = set()
    for number, (move, which) in enumerate(moves):
        if move == "enter":
            seen.enter(number)
            came += seen.entered[-1:] if number in seen.entered else []
        elif seen.entered:
            one = seen.entered[which % len(seen.entered)]
            ticket, ran = seen.tickets[one], seen.runs(one)
            if move == "cancel":
                answered = seen.line.cancel(ticket)
                # one that runs is its engine's to end; one that waits has ended, at once
                assert (one if ran else None) == answered
                assert (None if ran else Ending(pb.FINISH_CANCELLED)) == ticket.ending
            if move == "leave" or not ran:
                seen.line.leave(ticket)
                seen.over(one)
                dropped |= set() if ran else {one}
        # started in the order in which they came, without those who left before
        expected = [each for each in came if each not in dropped]
        assert expected[: len(seen.started)] == seen.started
        # no place stays empty while somebody waits, and nobody is beyond the bounds
        assert min(len(seen.entered), seen.places) == seen.line.running
        assert len(seen.entered) - seen.line.running == seen.line.waiting <= most_waiting
        started_now = [each for each in seen.entered if seen.runs(each)]
        assert len(started_now) == len(seen.line.started)
        assert len(seen.entered if engine_queues else seen.entered[:places]) == len(started_now)


def test_who_has_left_leaves_and_is_cancelled_without_a_word() -> None:
    seen = Seen(1, 1)
    seen.enter(1)
    ticket = seen.tickets[1]
    seen.line.leave(ticket)
    seen.line.leave(ticket)
    assert seen.line.cancel(ticket) is None
    assert (0, 0, None) == (seen.line.running, seen.line.waiting, ticket.ending)


def test_a_line_that_is_cleared_starts_nobody_more() -> None:
    seen = Seen(1, 1)
    seen.enter(1)
    seen.enter(2)
    seen.line.clear_waiting()
    seen.line.leave(seen.tickets[1])
    assert [1] == seen.started


async def test_calls_have_their_places_in_turn_and_the_line_before_them_has_an_end() -> None:
    line = CallLine(1, 1)
    may_end = asyncio.Event()

    async def call() -> None:
        async with line.place():
            await may_end.wait()

    calls = [asyncio.create_task(call()) for _ in range(3)]
    await asyncio.sleep(0)
    # the first has the place, the second waits, the third is refused
    assert (1, 1) == (line.running, line.waiting)
    with pytest.raises(RequestRefused, match="1 requests wait already"):
        await calls[2]
    may_end.set()
    await asyncio.gather(*calls[:2])
    assert (0, 0) == (line.running, line.waiting)


async def test_a_call_that_is_given_up_leaves_its_place_to_the_next_wherever_it_stood() -> None:
    line = CallLine(1, 2)
    first = await line.turn()
    waits, next_one = asyncio.create_task(line.turn()), asyncio.create_task(line.turn())
    await asyncio.sleep(0)
    # one gives up as it waits
    waits.cancel()
    await asyncio.sleep(0)
    assert (1, 1) == (line.running, line.waiting)
    # another at the very moment at which it is given the place
    line.leave(first)
    next_one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await next_one
    assert (0, 0) == (line.running, line.waiting)
