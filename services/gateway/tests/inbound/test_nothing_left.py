"""A request that is over holds no memory: what it left must not wait for the collector of circles."""

import asyncio
import gc
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_gateway.inbound.http.exchange import Exchange
from weft_gateway.inbound.http.hot_path_protocol import HotPathProtocol
from weft_gateway.inbound.inference.in_flight_choice import InFlightChoice
from weft_gateway.inbound.inference.in_flight_response import InFlightResponse

Fronts = Any
CHAT: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
def no_collector() -> Generator[None]:
    """Only counted references free anything."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left(*kinds: type) -> list[str]:
    """Those of these kinds that are still in memory."""
    return [type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds)]


async def gone(look: Callable[[], list[str]]) -> list[str]:
    """What is left when the loop has had its turns; bounded."""
    with suppress(TimeoutError):
        async with asyncio.timeout(30):
            while look():
                await asyncio.sleep(0.01)
    return look()


@pytest.mark.parametrize(
    "fields", [{}, {"stream": True}, {"n": 2}, {"n": 2, "stream": True}, {"logprobs": True}], ids=str
)
async def test_an_answered_request_leaves_nothing_in_memory(fronts: Fronts, fields: dict[str, Any]) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | fields)
    await replica.engine.has(fields.get("n", 1))
    replica.engine.step("x")
    replica.engine.finish_all()
    assert 200 == (await wire.answer()).status
    assert [] == await gone(lambda: left(InFlightChoice, InFlightResponse))


async def test_a_refused_request_leaves_nothing_in_memory(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"n": 2})
    await replica.engine.has(2)
    next(iter(replica.engine.tickets.values())).fail(pb.FAULT_BAD_REQUEST, "no")
    assert 400 == (await wire.answer()).status
    replica.engine.finish_all()
    assert [] == await gone(lambda: left(InFlightChoice, InFlightResponse))


async def test_a_client_that_leaves_takes_its_request_and_its_connection_along(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT | {"stream": True})
    await replica.engine.has(1)
    replica.engine.step("x")
    assert 200 == (await wire.head())[0]
    await wire.close()
    await replica.engine.has(0)
    assert [] == await gone(lambda: left(InFlightChoice, InFlightResponse, Exchange, HotPathProtocol))
