"""What is taken of what stands on SIGNALS."""

from types import SimpleNamespace
from typing import Any

from weft_contracts.signals import DEMAND_BYTES, GatewayDemand
from weft_contracts.subjects import gateway_signal
from weft_eventlog import LastValue, LogUnavailable
from weft_runtime.signal_poller import DEMAND, SignalPoller


class Signals:
    def __init__(self) -> None:
        self.filters: list[str] = []
        self.values: list[LastValue] | None = []
        self.begun = 0

    def __call__(self, filter: str, called: str) -> "Signals":
        self.filters.append(filter)
        return self

    def anew(self) -> None:
        self.begun += 1

    async def said(self) -> list[LastValue]:
        if self.values is None:
            raise LogUnavailable("the signals can't be read")
        return self.values


Heard = list[tuple[str, GatewayDemand, float]]


def poller_of(signals: Signals, heard: Heard) -> SignalPoller[GatewayDemand]:
    runtime: Any = SimpleNamespace(signals=signals, client=SimpleNamespace(is_connected=True), connections=1)
    return SignalPoller(runtime, DEMAND, lambda whose, said, now: heard.append((whose, said, now)), lambda now: None)


def value(gateway: str, data: bytes) -> LastValue:
    return LastValue(gateway_signal(gateway, "demand"), data)


async def test_what_can_not_be_read_or_is_too_long_is_passed_over_and_the_subject_says_whose_it_is() -> None:
    signals, heard = Signals(), Heard()
    poller = poller_of(signals, heard)
    assert ["weft.sig.gateway.*.demand"] == signals.filters
    good = GatewayDemand().model_dump_json().encode()
    poller.take(
        [value("gw-1", good), value("gw-2", b"nonsense"), value("gw-3", good + b" " * DEMAND_BYTES)],
        5.0,
    )
    assert [("gw-1", GatewayDemand(), 5.0)] == heard


async def test_where_nothing_can_be_read_what_stands_there_ages_and_the_next_look_begins_anew() -> None:
    signals, heard = Signals(), Heard()
    poller = poller_of(signals, heard)
    await poller.read()
    signals.values = None
    await poller.read()
    assert 2 == signals.begun
