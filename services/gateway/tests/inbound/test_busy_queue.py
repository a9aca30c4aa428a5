"""The line for a busy model: a turn reaches somebody who can use it, whoever leaves at that moment."""

import asyncio

import pytest
from weft_contracts.ids import ModelId
from weft_gateway.inbound.inference.queue import BusyQueue, QueueFull

MODEL, OTHER = ModelId("m-aaaaaaaaaaaaaaaa"), ModelId("m-bbbbbbbbbbbbbbbb")


async def waiting(queue: BusyQueue, count: int) -> "list[asyncio.Task[ModelId]]":
    """So many, in line, the first one first."""
    tasks = [asyncio.create_task(queue.turn(MODEL, 5, again=False)) for _ in range(count)]
    while queue.waiting(MODEL) < count:
        await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("woken_first", [True, False])
async def test_a_turn_that_comes_as_its_owner_leaves_goes_to_the_next_one(woken_first: bool) -> None:
    queue = BusyQueue(8)
    leaver, next_one, last = await waiting(queue, 3)
    if woken_first:
        queue.wake(MODEL)
        leaver.cancel()
    else:
        leaver.cancel()
        queue.wake(MODEL)
    await asyncio.wait_for(next_one, 30)
    assert leaver.cancelled()
    assert not last.done()
    last.cancel()


async def test_a_turn_that_does_not_come_in_time_is_a_timeout_and_leaves_the_line() -> None:
    queue = BusyQueue(8)
    with pytest.raises(TimeoutError):
        await queue.turn(MODEL, 0.01, again=False)
    assert 0 == queue.total


async def test_a_full_line_takes_nobody_more() -> None:
    queue = BusyQueue(1)
    (first,) = await waiting(queue, 1)
    with pytest.raises(QueueFull):
        await queue.turn(MODEL, 1, again=False)
    queue.wake(MODEL)
    await first


async def test_who_finds_no_room_after_its_turn_is_not_forgotten_when_another_has_its_turn_too() -> None:
    queue = BusyQueue(8)

    async def looks_in_vain_once() -> None:
        await queue.turn(MODEL, 5, again=False)
        await queue.turn(MODEL, 5, again=True)

    unlucky = asyncio.create_task(looks_in_vain_once())
    (lucky,) = await waiting(queue, 1)
    while queue.waiting(MODEL) < 2:
        await asyncio.sleep(0)
    queue.wake(MODEL)
    queue.wake(MODEL)
    await asyncio.wait_for(lucky, 30)
    assert 1 == queue.total
    queue.wake(MODEL)
    await asyncio.wait_for(unlucky, 30)


async def test_a_line_that_filled_up_meanwhile_takes_back_who_looked_in_vain() -> None:
    queue = BusyQueue(1)
    looked = asyncio.Event()

    async def looks_slowly() -> None:
        await queue.turn(MODEL, 5, again=False)
        await looked.wait()
        await queue.turn(MODEL, 5, again=True)

    slow = asyncio.create_task(looks_slowly())
    while not queue.waiting(MODEL):
        await asyncio.sleep(0)
    queue.wake(MODEL)
    (newcomer,) = await waiting(queue, 1)
    looked.set()
    while queue.waiting(MODEL) < 2:
        assert not slow.done()
        await asyncio.sleep(0)
    queue.wake(MODEL)
    await asyncio.wait_for(slow, 30)
    assert not newcomer.done()
    newcomer.cancel()


async def test_who_stands_in_two_lines_is_called_by_either_and_leaves_the_other() -> None:
    queue = BusyQueue(8)
    for called in (MODEL, OTHER):
        both = asyncio.create_task(queue.turn(MODEL, 5, again=False, beside=[OTHER]))
        while not queue.waiting(OTHER):
            await asyncio.sleep(0)
        assert (1, 1, 1) == (queue.waiting(MODEL), queue.waiting(OTHER), queue.total)
        queue.wake(called)
        assert called == await both
        assert 0 == queue.waiting(MODEL) + queue.waiting(OTHER)


async def test_a_turn_of_another_line_that_comes_as_its_owner_leaves_goes_on_in_that_line() -> None:
    queue = BusyQueue(8)
    leaver = asyncio.create_task(queue.turn(MODEL, 5, again=False, beside=[OTHER]))
    while not queue.waiting(OTHER):
        await asyncio.sleep(0)
    own, other = (asyncio.create_task(queue.turn(of, 5, again=False)) for of in (MODEL, OTHER))
    while queue.waiting(OTHER) < 2:
        await asyncio.sleep(0)
    queue.wake(OTHER)
    leaver.cancel()
    assert await asyncio.wait_for(other, 30) == OTHER
    assert not own.done()
    own.cancel()


async def test_nobody_stands_in_another_line_that_is_full() -> None:
    queue = BusyQueue(1)
    first = asyncio.create_task(queue.turn(OTHER, 5, again=False))
    while not queue.waiting(OTHER):
        await asyncio.sleep(0)
    second = asyncio.create_task(queue.turn(MODEL, 5, again=False, beside=[OTHER]))
    while not queue.waiting(MODEL):
        await asyncio.sleep(0)
    assert 1 == queue.waiting(OTHER)
    queue.wake(OTHER)
    await first
    assert not second.done()
    second.cancel()
