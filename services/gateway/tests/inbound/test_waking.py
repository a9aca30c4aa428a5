"""A request for a model that sleeps waits for it, and asks for its first replica; and what a gateway tells of it."""

import asyncio
from typing import Any

import pytest
from weft_contracts.api_key import hash_of
from weft_contracts.facts.key import Created
from weft_contracts.ids import KeyId, ModelId
from weft_contracts.subjects import api_key
from weft_gateway.inbound.inference.limits import Limits

from .conftest import Front

Fronts = Any
SLEEPY = ModelId("m-sleepy")
ASKED: dict[str, Any] = {"model": "sleepy", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


class Asked:
    """The models that were asked for, each with the request."""

    def __init__(self) -> None:
        self.models: list[tuple[ModelId, str]] = []

    def ask(self, model: ModelId, correlation_id: str) -> None:
        self.models.append((model, correlation_id))


@pytest.fixture
def asked() -> Asked:
    return Asked()


async def opened(fronts: Fronts, asked: Asked, wait: float = 30, **more: Any) -> Front:
    front: Front = await fronts.open(Limits(loading_wait=wait), activations=asked, **more)
    front.a_model("sleepy", 1, of=SLEEPY, min_replicas=0)
    return front


async def until(true: Any) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_request_for_a_model_that_sleeps_asks_for_it_and_is_answered_by_what_comes(
    fronts: Fronts, asked: Asked
) -> None:
    front = await opened(fronts, asked)
    wire = await fronts.connect(front)
    wire.post(ASKED, headers={"x-request-id": "who-waits"})
    await until(lambda: asked.models)
    assert {(SLEEPY, "who-waits")} == set(asked.models)
    assert [(SLEEPY, 1)] == [(each.model, each.loading) for each in front.loads.demand()]

    replica = await front.a_replica(of=SLEEPY)
    await replica.engine.has(1)
    [told] = front.loads.demand()
    assert (1, 0, 0, 0.0) == (told.running, told.waiting, told.loading, told.idle_s)
    replica.engine.step("awake")
    replica.engine.finish_all()
    assert "awake" == (await wire.answer()).text

    await asyncio.sleep(0.05)
    [told] = front.loads.demand()
    assert (0, 0, 0, 2) == (told.running, told.waiting, told.loading, told.tokens)
    assert told.idle_s > 0


async def test_who_waits_in_vain_is_told_that_it_sleeps_and_when_to_come_again(fronts: Fronts, asked: Asked) -> None:
    front = await opened(fronts, asked, wait=0.3)
    wire = await fronts.connect(front)
    wire.post(ASKED | {"stream": False})
    said = await wire.answer()
    assert (503, "5") == (said.status, said.headers["retry-after"])
    assert "Model 'sleepy' sleeps: a request wakes it." == said.json()["error"]["message"]
    assert asked.models


async def test_nobody_wakes_what_loads_or_what_he_may_not_use_or_what_is_not_there(
    fronts: Fronts, asked: Asked
) -> None:
    front = await opened(fronts, asked, wait=0.3)
    front.a_loading_replica(1, SLEEPY)
    for body, status in ((ASKED, 503), (ASKED | {"model": "another"}, 404)):
        wire = await fronts.connect(front)
        wire.post(body | {"stream": False})
        assert status == (await wire.answer()).status
    assert [] == asked.models

    kept = await opened(fronts, asked, wait=0.3, policy="keys")
    secret = "weft-only-another"
    made = Created(hash=hash_of(secret), prefix="weft", scopes=("inference",), models=("another",))
    kept.log.given(api_key(KeyId("k-1")), made)
    wire = await fronts.connect(kept)
    wire.post(ASKED | {"stream": False}, headers={"authorization": f"Bearer {secret}"})
    assert 403 == (await wire.answer()).status
    assert [] == asked.models
