"""A stop is never lost, whatever the cancelled task was waiting for."""

import asyncio
import random
from typing import Any

import pytest
from weft_eventlog import EventLog, Projection
from weft_eventlog.cancelling import end_if_cancelled
from weft_testing.mesh_server import MeshServer


async def cancelled_as_the_answer_comes(work: Any, answer: asyncio.Future[None]) -> bool:
    """Cancel a task in the same turn of the loop as its answer arrives; whether it ended."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0.01)
    answer.set_result(None)
    task.cancel()
    _, left = await asyncio.wait([task], timeout=10)
    task.cancel()
    await asyncio.wait([task])
    return not left


async def test_a_cancellation_that_an_await_swallowed_is_raised_anew() -> None:
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        await asyncio.wait_for(answer, 30)
        end_if_cancelled()
        await asyncio.sleep(30)

    assert await cancelled_as_the_answer_comes(work(), answer)


async def test_who_is_not_cancelled_goes_on() -> None:
    async with asyncio.timeout(30):
        await asyncio.sleep(0)
        end_if_cancelled()


async def test_a_projection_ends_though_its_answer_came_with_the_cancellation(
    mesh_server: MeshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EventLog(await mesh_server.root(), actor="test")
    identity, answer = log.identity, asyncio.get_running_loop().create_future()

    async def slow() -> tuple[str, int]:
        await asyncio.wait_for(answer, 30)
        return await identity()

    monkeypatch.setattr(log, "identity", slow)
    projection = Projection(log, name="test", fold=lambda _: None)
    assert await cancelled_as_the_answer_comes(projection.run(), answer)


async def test_a_projection_ends_whenever_it_is_stopped(mesh_server: MeshServer) -> None:
    log = EventLog(await mesh_server.root(), actor="test")
    for _ in range(60):
        task = asyncio.create_task(Projection(log, name="test", fold=lambda _: None).run())
        await asyncio.sleep(random.uniform(0, 0.02))
        task.cancel()
        _, left = await asyncio.wait([task], timeout=10)
        assert not left
