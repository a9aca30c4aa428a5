"""Who is told which replica answers, and who may choose it: over a real socket."""

from typing import Any

from weft_contracts.api_key import hash_of, key_id, prefix_of, secret_of
from weft_contracts.facts.key import Created
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.node import Draining
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec, Scope
from weft_contracts.ids import ModelId
from weft_contracts.subjects import api_key, model, node

Fronts = Any
Front = Any
CHAT: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "hi"}]}
TELLING = {"x-weft-replica", "x-weft-node", "x-weft-run-event"}
OTHER = ModelId("m-bbbbbbbbbbbbbbbb")
EXPLAIN = {"x-weft-explain": "1"}


def a_key(front: Front, number: int, *scopes: Scope) -> dict[str, str]:
    """The header of a new key."""
    secret = secret_of(bytes([number]) * 36)
    hash = hash_of(secret)
    front.log.given(api_key(key_id(hash)), Created(hash=hash, prefix=prefix_of(secret), scopes=scopes))
    return {"authorization": f"Bearer {secret}"}


async def answered(fronts: Fronts, front: Front, *engines: Any, headers: dict[str, str], stream: bool = False) -> Any:
    """A request that is answered at once by whichever engine gets it, or refused."""
    wire = await fronts.connect(front)
    wire.post(CHAT | {"stream": stream}, headers=headers)
    for each in engines:
        await each.engine.has(1)
        each.engine.step("x")
        each.engine.finish_all()
    return await wire.answer()


async def test_answers_tell_nothing_of_replicas_unless_asked_or_set_so(fronts: Fronts) -> None:
    quiet, open_ = await fronts.open(), await fronts.open(show_replicas=True)
    for front, headers, told in (
        (quiet, {}, False),
        (quiet, {"x-weft-explain": "0"}, False),
        (quiet, EXPLAIN, True),
        (open_, {}, True),
    ):
        replica = front.replicas[0] if front.replicas else await front.a_replica()
        for stream in (False, True):
            answer = await answered(fronts, front, replica, headers=headers, stream=stream)
            assert (TELLING if told else set()) == TELLING & set(answer.headers)
            if told:
                assert (replica.id, "node-1") == (answer.headers["x-weft-replica"], answer.headers["x-weft-node"])
    answer = await answered(fronts, quiet, headers={"x-weft-explain": "yes"})
    assert (400, "x-weft-explain") == (answer.status, answer.json()["error"]["param"])


async def test_a_key_that_may_not_read_the_mesh_is_neither_told_nor_may_choose(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys")
    replica = await front.a_replica()
    cases: list[tuple[tuple[Scope, ...], int]] = [
        (("inference",), 403),
        (("inference", "read"), 200),
        (("admin",), 200),
    ]
    for number, (scopes, status) in enumerate(cases, start=1):
        key = a_key(front, number, *scopes)
        for asking in (EXPLAIN, {"x-weft-replica": replica.id}):
            engines = [replica] if status == 200 else []
            answer = await answered(fronts, front, *engines, headers=key | asking)
            assert status == answer.status
            assert (status == 200) == bool(TELLING & set(answer.headers))
            if status == 403:
                assert (next(iter(asking)), "scope_missing") == (
                    answer.json()["error"]["param"],
                    answer.json()["error"]["code"],
                )
        answer = await answered(fronts, front, replica, headers=key)
        assert (200, False) == (answer.status, bool(TELLING & set(answer.headers)))


async def test_the_chosen_replica_answers_and_no_other(fronts: Fronts) -> None:
    front = await fronts.open()
    replicas = [await front.a_replica(1), await front.a_replica(2)]
    for chosen in [*replicas, *replicas, replicas[0], replicas[0]]:
        answer = await answered(fronts, front, chosen, headers={"x-weft-replica": chosen.id})
        assert (200, chosen.id) == (answer.status, answer.headers["x-weft-replica"])


async def test_a_choice_that_cannot_be_had_says_why_at_once(fronts: Fronts) -> None:
    front = await fronts.open(concurrency=1)
    ready, loading = await front.a_replica(1), front.a_loading_replica(2)
    front.log.given(model(OTHER), SpecAccepted(name="other", revision=1, digest="d-2", spec=front.spec))

    async def refused(id: str, **fields: str) -> tuple[int, str, str]:
        wire = await fronts.connect(front)
        wire.post(CHAT | fields, headers={"x-weft-replica": id})
        answer = await wire.answer()
        error = answer.json()["error"]
        return answer.status, error["code"], error["message"]

    status, code, sentence = await refused("m-none-1")
    assert (404, "replica_not_found") == (status, code)
    assert ready.id in sentence
    assert (400, "replica_of_another_model") == (await refused(ready.id, model="other"))[:2]
    status, code, sentence = await refused(loading)
    assert (503, "replica_not_ready") == (status, code)
    assert "it is loading" in sentence
    # one that has no room, though another has
    second = await front.served(loading)
    wire = await fronts.connect(front)
    wire.post(CHAT, headers={"x-weft-replica": ready.id})
    await ready.engine.has(1)
    status, code, sentence = await refused(ready.id)
    assert (529, "all_busy") == (status, code)
    assert "runs 1 of 1 requests" in sentence
    assert not second.engine.submits
    ready.engine.finish_all()
    assert 200 == (await wire.answer()).status
    # and one whose node drains
    front.log.given(node(ready.node), Draining(why="admin", deadline_s=60.0))
    status, code, sentence = await refused(ready.id)
    assert (503, "replica_draining") == (status, code)
    assert "its node node-1 drains" in sentence


async def test_a_chosen_replica_that_dies_is_not_replaced_by_another(fronts: Fronts) -> None:
    front = await fronts.open()
    first, second = await front.a_replica(1), await front.a_replica(2)
    wire = await fronts.connect(front)
    wire.post(CHAT, headers={"x-weft-replica": first.id})
    await first.engine.has(1)
    await first.die()
    answer = await wire.answer()
    assert 503 == answer.status, answer.body
    assert not second.engine.submits


async def test_the_other_routes_take_the_choice_too(fronts: Fronts) -> None:
    front = await fronts.open()
    replica = await front.a_replica()
    wire = await fronts.connect(front)
    wire.post({"model": "sim", "prompt": "x"}, path="/v1/completions", headers={"x-weft-replica": replica.id})
    await replica.engine.has(1)
    replica.engine.finish_all()
    assert replica.id == (await wire.answer()).headers["x-weft-replica"]
    vectors = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"embeddings": True})
    front.log.given(model(OTHER), SpecAccepted(name="vectors", revision=1, digest="d-2", spec=vectors))
    for path, body in (("/v1/completions", {"prompt": "x"}), ("/v1/embeddings", {"input": "x"})):
        name = "vectors" if path == "/v1/embeddings" else "sim"
        wire.post({"model": name} | body, path=path, headers={"x-weft-replica": "m-none-1"})
        assert "replica_not_found" == (await wire.answer()).json()["error"]["code"]
