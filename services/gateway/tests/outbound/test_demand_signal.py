"""What a gateway says of its demand: each second, bounded, and a last time as it stops."""

import asyncio
from typing import Any

from nats.errors import ConnectionClosedError
from weft_contracts.ids import ModelId
from weft_contracts.permissions import service
from weft_contracts.signals import DEMAND_BYTES, MOST_DEMANDS, GatewayDemand, ModelDemand
from weft_gateway.domain.told_demand import told_demand
from weft_gateway.outbound.demand_signal import DemandSignal


class Client:
    is_connected = True

    def __init__(self, *, closed: bool = False) -> None:
        self.said: list[tuple[str, GatewayDemand]] = []
        self._closed = closed

    async def publish(self, subject: str, data: bytes) -> None:
        if self._closed:
            raise ConnectionClosedError
        self.said.append((subject, GatewayDemand.model_validate_json(data)))


def demand(model: str, **said: Any) -> ModelDemand:
    return ModelDemand(model=ModelId(model), **said)


def test_those_that_need_something_come_first_and_what_has_no_room_is_counted() -> None:
    resting = [demand(f"m-{number}", idle_s=float(number)) for number in range(MOST_DEMANDS + 30)]
    told = told_demand([*resting, demand("m-waits", waiting=1), demand("m-runs", running=1)])
    assert {"m-waits", "m-runs"} == {each.model for each in told.models[:2]}
    assert (MOST_DEMANDS, 32) == (len(told.models), told.left_out)
    assert [0.0, 1.0, 2.0] == [each.idle_s for each in told.models[2:5]]


def test_the_longest_signal_is_one_that_is_read() -> None:
    most = [
        demand(f"m-{number:038}", running=1 << 20, waiting=1 << 20, loading=1 << 20, tokens=1 << 50)
        for number in range(MOST_DEMANDS)
    ]
    assert len(told_demand(most).model_dump_json(exclude_defaults=True)) < DEMAND_BYTES


async def test_a_gateway_that_stops_says_so_last_under_a_subject_that_it_may_write_to() -> None:
    client = Client()
    signal = DemandSignal(client, "gateway-1", lambda: [demand("m-a", running=2)])
    running = asyncio.create_task(signal.run())
    await asyncio.sleep(0.05)
    await signal.leave()
    await asyncio.sleep(1.1)
    running.cancel()

    subject = "weft.sig.gateway.gateway-1.demand"
    assert [(subject, False, 2), (subject, True, 0)] == [
        (each, said.leaving, sum(model.running for model in said.models)) for each, said in client.said
    ]
    assert "weft.sig.gateway.*.demand" in service("gateway").publish
    assert not any(each.startswith("weft.sig.gateway") for each in service("reconciler").publish)


async def test_a_connection_that_is_closed_ends_nothing() -> None:
    signal = DemandSignal(Client(closed=True), "gateway-1", list)
    running = asyncio.create_task(signal.run())
    await asyncio.sleep(0.05)
    assert not running.done()
    await signal.leave()
    running.cancel()
