"""Embeddings over HTTP: another replica after a failure, nobody waits for a client that is gone."""

import asyncio
import base64

from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.subjects import model
from weft_dataplane import RequestRefused, packed

from .conftest import DIGEST, MODEL, Front, Fronts, Replica

BODY = {"model": "sim", "input": ["a", "bcd"], "encoding_format": "base64"}


def an_embedder(front: Front) -> None:
    """The front's model makes embeddings."""
    front.spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"embeddings": True})
    front.log.given(model(MODEL), SpecAccepted(name="sim", revision=1, digest=DIGEST, spec=front.spec))


async def embeds(replica: Replica) -> None:
    """Wait until a replica is at work."""
    async with asyncio.timeout(30):
        while not replica.engine.embedding:
            await asyncio.sleep(0.01)


async def test_a_failed_replicas_request_is_answered_by_another(fronts: Fronts) -> None:
    front = await fronts.open()
    an_embedder(front)
    replicas = [await front.a_replica(1), await front.a_replica(2)]
    for each in replicas:
        each.engine.dimensions = 2
        each.engine.may_embed.clear()
    wire = await fronts.connect(front)
    wire.post(BODY, path="/v1/embeddings", headers={"x-weft-explain": "1"})
    async with asyncio.timeout(30):
        while not any(each.engine.embedding for each in replicas):
            await asyncio.sleep(0.01)
    broken, other = sorted(replicas, key=lambda each: not each.engine.embedding)
    other.engine.may_embed.set()
    await broken.die()

    answer = await wire.answer()

    assert (200, other.id) == (answer.status, answer.headers["x-weft-replica"])
    found = [base64.b64decode(each["embedding"]) for each in answer.json()["data"]]
    assert [packed([1.0, 1.0]), packed([3.0, 3.0])] == found
    assert {"prompt_tokens": 4, "total_tokens": 4} == answer.json()["usage"]


async def test_an_engine_that_always_fails_is_given_up_with_its_reason(fronts: Fronts) -> None:
    front = await fronts.open()
    an_embedder(front)
    replica = await front.a_replica()
    replica.engine.refuse = RequestRefused(pb.FAULT_ENGINE, "no memory left")
    wire = await fronts.connect(front)

    wire.post(BODY, path="/v1/embeddings")
    answer = await wire.answer()

    assert 503 == answer.status
    assert "no memory left" in answer.json()["error"]["message"]


async def test_a_client_that_leaves_is_told_to_the_engine(fronts: Fronts) -> None:
    front = await fronts.open()
    an_embedder(front)
    replica = await front.a_replica()
    replica.engine.may_embed.clear()
    wire = await fronts.connect(front)
    wire.post(BODY, path="/v1/embeddings")
    await embeds(replica)
    (state,) = front.pool.endpoint_states(MODEL)
    assert 1 == state.in_flight

    await wire.close()

    async with asyncio.timeout(30):
        while state.in_flight:
            await asyncio.sleep(0.01)


async def test_an_embedding_asked_of_a_model_that_writes_is_refused(fronts: Fronts) -> None:
    front = await fronts.open()
    await front.a_replica()
    wire = await fronts.connect(front)

    wire.post(BODY, path="/v1/embeddings")
    answer = await wire.answer()

    assert 400 == answer.status
    assert "model_makes_no_embeddings" == answer.json()["error"]["code"]
