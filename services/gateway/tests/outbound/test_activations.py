"""A model that sleeps is asked for once, however many requests wait, and again after a while."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from weft_contracts.facts.request import ActivationRequested
from weft_contracts.ids import ModelId
from weft_gateway.domain.refused import Refused
from weft_gateway.outbound.activations import EVERY_S, MOST_AT_ONCE, Activations

MODEL, OTHER = ModelId("m-a"), ModelId("m-b")


class Log:
    """What was asked for, by model, each with the request that it was asked for."""

    def __init__(self, refused: Refused | None = None) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.open = asyncio.Event()
        self.open.set()
        self._refused = refused

    async def ask(self, id: str, fact: ActivationRequested, correlation_id: str, *, actor: str) -> None:
        await self.open.wait()
        if self._refused is not None:
            raise self._refused
        self.asked.append((fact.model, correlation_id, actor))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.seconds)
    return now


def asking(log: Any) -> Activations:
    return Activations(log, "gateway")


async def soon() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_many_requests_ask_once_for_each_model_and_again_after_a_while(clock: SimpleNamespace) -> None:
    log = Log()
    activations = asking(log)
    for number in range(50):
        activations.ask(MODEL, f"c-{number}")
        activations.ask(OTHER, f"c-{number}")
    await soon()
    assert [(MODEL, "c-0", "gateway"), (OTHER, "c-0", "gateway")] == log.asked

    clock.seconds += EVERY_S - 0.1
    activations.ask(MODEL, "c-51")
    clock.seconds += 0.2
    activations.ask(MODEL, "c-52")
    await soon()
    assert (MODEL, "c-52", "gateway") == log.asked[-1]
    assert 3 == len(log.asked)


async def test_a_log_that_does_not_answer_is_not_flooded(clock: SimpleNamespace) -> None:
    log = Log()
    log.open.clear()
    activations = asking(log)
    for number in range(MOST_AT_ONCE + 20):
        activations.ask(ModelId(f"m-{number}"), "c")
    log.open.set()
    await soon()
    assert MOST_AT_ONCE == len(log.asked)

    activations.ask(ModelId(f"m-{MOST_AT_ONCE + 5}"), "c")
    await soon()
    assert MOST_AT_ONCE + 1 == len(log.asked), "who was passed over asks again at once"


async def test_a_refusal_ends_nothing(clock: SimpleNamespace) -> None:
    log = Log(Refused(503, "The event log can't be reached; try again soon.", code="log_away"))
    activations = asking(log)
    activations.ask(MODEL, "c")
    await soon()
    clock.seconds += EVERY_S
    activations.ask(MODEL, "c")
    await soon()
    assert [] == log.asked
