"""A request that names an alias: which model answers, what the answer says of it, and where it goes when that one
can't."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from weft_contracts.aliases import AliasRule, AliasTarget
from weft_contracts.api_key import hash_of
from weft_contracts.facts.key import Created
from weft_contracts.facts.model import Deleted, Unservable
from weft_contracts.facts.name import Aliased
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import KeyId, ModelId
from weft_contracts.subjects import api_key, model, name
from weft_dataplane import RequestRefused
from weft_gateway.inbound.inference.limits import Limits

from .conftest import Answer, Front, Replica

Fronts = Any
LOCAL, CLOUD, VECTORS = ModelId("m-local"), ModelId("m-cloud"), ModelId("m-vectors")
MESSAGES = [{"role": "user", "content": "hi"}]
ASKED: dict[str, Any] = {"model": "chat", "messages": MESSAGES}
EXPLAIN = {"x-weft-explain": "1"}


async def opened(fronts: Fronts, limits: Limits | None = None, **more: Any) -> Front:
    """A front with the models `local` and `cloud`, one request each at a time, and no replica."""
    front: Front = await fronts.open(limits or Limits(loading_wait=30, busy_wait=30), **more)
    front.a_model("local", 1, of=LOCAL)
    front.a_model("cloud", 1, of=CLOUD)
    return front


def an_alias(
    front: Front, rule: AliasRule, *models: ModelId, weights: Sequence[int] = (), called: str = "chat"
) -> None:
    shares = weights or [1] * len(models)
    targets = tuple(AliasTarget(model=id, weight=weight) for id, weight in zip(models, shares, strict=True))
    front.log.given(name("model", called), Aliased(name=called, rule=rule, targets=targets))


async def asked(fronts: Fronts, front: Front, **more: Any) -> Any:
    """A connection on which a chat was asked for."""
    wire = await fronts.connect(front)
    wire.post(ASKED | more, headers=EXPLAIN)
    return wire


async def answered(wire: Any, replica: Replica, text: str = "fine") -> Answer:
    await replica.engine.has(1)
    replica.engine.step(text)
    replica.engine.finish_all()
    said: Answer = await wire.answer()
    assert 200 == said.status, said.body
    return said


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


async def test_in_order_the_first_answers_while_it_is_free_and_the_next_while_it_is_busy(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    local, cloud = await front.a_replica(1, LOCAL), await front.a_replica(1, CLOUD)

    first = await asked(fronts, front)
    await local.engine.has(1)
    second = await asked(fronts, front)
    said = await answered(second, cloud)

    assert "cloud" == said.json()["model"]
    assert ("chat", cloud.id) == (said.headers["x-weft-alias"], said.headers["x-weft-replica"])
    assert "local" == (await answered(first, local)).json()["model"]
    assert "local" == (await answered(await asked(fronts, front), local)).json()["model"]


@pytest.mark.parametrize("free_first", ["local", "cloud"])
async def test_while_all_are_busy_a_request_waits_for_whichever_is_free_first(fronts: Fronts, free_first: str) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    replicas = {"local": await front.a_replica(1, LOCAL), "cloud": await front.a_replica(1, CLOUD)}
    running = [await asked(fronts, front) for _ in replicas]
    for each in replicas.values():
        await each.engine.has(1)
    waits = await asked(fronts, front)
    await until(lambda: front.dispatcher.queue.total == 1)

    free = replicas[free_first]
    free.engine.finish_all()
    said = await answered(waits, free)

    assert free_first == said.json()["model"]
    next(each for each in replicas.values() if each is not free).engine.finish_all()
    assert [200, 200] == [(await wire.answer()).status for wire in running]
    assert 0 == front.dispatcher.queue.total


async def test_a_model_that_has_no_replica_yet_is_passed_over_until_it_has(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    cloud = await front.a_replica(1, CLOUD)
    assert "cloud" == (await answered(await asked(fronts, front), cloud)).json()["model"]
    local = await front.a_replica(1, LOCAL)
    assert "local" == (await answered(await asked(fronts, front), local)).json()["model"]


async def test_while_none_is_ready_a_request_waits_for_whichever_is_ready_first(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    front.a_loading_replica(1, LOCAL)
    coming = front.a_loading_replica(1, CLOUD)
    wire = await asked(fronts, front)
    await until(lambda: front.dispatcher.loading.total == 1)
    cloud = await front.served(coming)
    assert "cloud" == (await answered(wire, cloud)).json()["model"]


@pytest.mark.parametrize("rule", ["order", "weights"])
async def test_a_model_that_fails_a_request_for_good_is_followed_by_the_next(fronts: Fronts, rule: AliasRule) -> None:
    front = await opened(fronts)
    an_alias(front, rule, LOCAL, CLOUD, weights=(10_000, 1))
    local, cloud = await front.a_replica(1, LOCAL), await front.a_replica(1, CLOUD)
    local.engine.refuse = RequestRefused(pb.FAULT_ENGINE, "out of luck")
    for stream in (False, True):
        wire = await asked(fronts, front, stream=stream)
        await cloud.engine.has(1)
        cloud.engine.step("fine")
        cloud.engine.finish_all()
        said = await wire.answer()
        assert 200 == said.status
        assert {"cloud"} == {each["model"] for each in (said.events[:-1] if stream else [said.json()])}


async def test_an_engine_that_says_itself_that_it_is_full_is_followed_by_the_next_at_once(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    local, cloud = await front.a_replica(1, LOCAL), await front.a_replica(1, CLOUD)
    local.engine.refuse = RequestRefused(pb.FAULT_BUSY, "so many a minute and no more")
    assert "cloud" == (await answered(await asked(fronts, front), cloud)).json()["model"]


async def test_a_fault_of_the_request_itself_goes_nowhere_else(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    local, cloud = await front.a_replica(1, LOCAL), await front.a_replica(1, CLOUD)
    local.engine.refuse = RequestRefused(pb.FAULT_BAD_REQUEST, "no such thing")
    said = await (await asked(fronts, front)).answer()
    assert 400 == said.status
    assert [] == cloud.engine.submits


async def test_what_has_begun_stays_with_its_model(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    local, cloud = await front.a_replica(1, LOCAL), await front.a_replica(1, CLOUD)
    wire = await asked(fronts, front, stream=True)
    await local.engine.has(1)
    local.engine.step("one")
    await wire.head()
    assert b'"model":"local"' in await wire.chunk()
    await local.die()
    assert b'"code":"replica_failed"' in await wire.chunk()
    assert [] == cloud.engine.submits


async def test_where_none_is_left_the_last_reason_is_the_answer(fronts: Fronts) -> None:
    front = await opened(fronts, Limits(loading_wait=0.2, busy_wait=0.2))
    an_alias(front, "order", LOCAL, CLOUD)
    for id, why in ((LOCAL, "no GGUF"), (CLOUD, "no key")):
        front.log.given(model(id), Unservable(revision=1, reason=why))
    said = await (await asked(fronts, front)).answer()
    assert 503 == said.status
    assert "Model 'local' can't be served: no GGUF" == said.json()["error"]["message"]


async def test_shares_go_by_weight(fronts: Fronts, monkeypatch: pytest.MonkeyPatch) -> None:
    front = await opened(fronts)
    an_alias(front, "weights", LOCAL, CLOUD, weights=(80, 20))
    replicas = {"local": await front.a_replica(1, LOCAL), "cloud": await front.a_replica(1, CLOUD)}
    for draw, called in ((0.1, "local"), (0.79, "local"), (0.81, "cloud")):
        monkeypatch.setattr("random.random", lambda draw=draw: draw)
        assert called == (await answered(await asked(fronts, front), replicas[called])).json()["model"]


async def test_a_model_that_can_t_do_what_is_asked_is_passed_over(fronts: Fronts) -> None:
    front = await opened(fronts)
    front.a_model("vectors", of=VECTORS, engine_args={"embeddings": True})
    an_alias(front, "order", VECTORS, LOCAL)
    local, vectors = await front.a_replica(1, LOCAL), await front.a_replica(1, VECTORS)
    vectors.engine.dimensions = 2

    wire = await fronts.connect(front)
    wire.post({"model": "chat", "input": "a"}, path="/v1/embeddings", headers=EXPLAIN)
    embedded = await wire.answer()

    assert (200, "vectors") == (embedded.status, embedded.json()["model"])
    assert "chat" == embedded.headers["x-weft-alias"]
    assert "local" == (await answered(await asked(fronts, front), local)).json()["model"]
    wire.post({"model": "chat", "query": "a", "documents": ["b"]}, path="/v1/rerank")
    assert "Model 'vectors' does not rerank." == (await wire.answer()).json()["error"]["message"]


async def test_embeddings_go_to_the_next_model_as_chats_do(fronts: Fronts) -> None:
    front = await opened(fronts)
    others = (ModelId("m-broken"), VECTORS)
    for id, called in zip(others, ("broken", "vectors"), strict=True):
        front.a_model(called, of=id, engine_args={"embeddings": True})
    an_alias(front, "order", *others)
    broken, vectors = await front.a_replica(1, others[0]), await front.a_replica(1, VECTORS)
    broken.engine.refuse = RequestRefused(pb.FAULT_ENGINE, "no memory left")
    vectors.engine.dimensions = 2
    wire = await fronts.connect(front)
    wire.post({"model": "chat", "input": "a"}, path="/v1/embeddings", headers=EXPLAIN)
    said = await wire.answer()
    assert (200, "vectors") == (said.status, said.json()["model"])
    assert vectors.id == said.headers["x-weft-replica"]


async def test_several_choices_are_one_model_s(fronts: Fronts) -> None:
    front = await opened(fronts)
    front.a_model("wide", 8, of=VECTORS)
    an_alias(front, "order", VECTORS, CLOUD)
    wide, cloud = await front.a_replica(1, VECTORS), await front.a_replica(1, CLOUD)
    wire = await asked(fronts, front, n=3)
    await wide.engine.has(3)
    wide.engine.finish_all()
    said = await wire.answer()
    assert ("wide", 3) == (said.json()["model"], len(said.json()["choices"]))
    assert [] == cloud.engine.submits


async def test_a_replica_of_any_of_its_models_may_be_chosen_and_no_other(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    await front.a_replica(1, LOCAL)
    cloud, stranger = await front.a_replica(1, CLOUD), await front.a_replica(1)
    wire = await fronts.connect(front)
    wire.post(ASKED, headers={"x-weft-replica": cloud.id})
    assert "cloud" == (await answered(wire, cloud)).json()["model"]
    wire.post(ASKED, headers={"x-weft-replica": stranger.id})
    assert 400 == (await wire.answer()).status


async def test_an_alias_goes_on_without_a_model_that_went(fronts: Fronts) -> None:
    front = await opened(fronts)
    an_alias(front, "order", LOCAL, CLOUD)
    cloud = await front.a_replica(1, CLOUD)
    front.log.given(model(LOCAL), Deleted())
    assert "cloud" == (await answered(await asked(fronts, front), cloud)).json()["model"]
    front.log.given(model(CLOUD), Deleted())
    said = await (await asked(fronts, front)).answer()
    assert 503 == said.status
    assert "Alias 'chat' stands for no model that is there." == said.json()["error"]["message"]


async def test_a_key_for_the_alias_reaches_its_models_and_by_that_name_alone(fronts: Fronts) -> None:
    front = await opened(fronts, policy="keys")
    an_alias(front, "order", LOCAL)
    an_alias(front, "order", LOCAL, called="other")
    secret = "weft-only-chat"
    made = Created(hash=hash_of(secret), prefix="weft", scopes=("inference",), models=("chat",))
    front.log.given(api_key(KeyId("k-1")), made)
    local = await front.a_replica(1, LOCAL)
    wire, headers = await fronts.connect(front), {"authorization": f"Bearer {secret}"}
    wire.post(ASKED, headers=headers)
    assert "local" == (await answered(wire, local)).json()["model"]
    for named in ("local", "other"):
        wire.post(ASKED | {"model": named}, headers=headers)
        assert 403 == (await wire.answer()).status
    lines = f"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1:{front.port}\r\nauthorization: Bearer {secret}\r\n\r\n"
    wire.send(lines.encode())
    assert ["chat"] == [each["id"] for each in (await wire.answer()).json()["data"]]


async def test_figures_and_the_log_are_the_models_with_the_alias_beside(fronts: Fronts) -> None:
    front = await opened(fronts, noting=b"k")
    an_alias(front, "order", LOCAL, CLOUD)
    local = await front.a_replica(1, LOCAL)
    with capture_logs() as logs:
        await answered(await asked(fronts, front), local)
    line = next(each for each in logs if each["event"] == "request")
    assert ("local", "chat") == (line["model"], line["alias"])
    alias = {"alias": "chat", "model": "local", "error_type": ""}
    assert 1 == value(front.registry, "weft_gateway_aliased_total", **alias)
    labels = {"gen_ai_operation_name": "chat", "gen_ai_request_model": "local", "error_type": ""}
    assert 1 == value(front.registry, "gen_ai_server_request_duration_seconds_count", **labels)
    # while it stands for that model, and no longer
    front.metrics.sweep()
    assert 1 == value(front.registry, "weft_gateway_aliased_total", **alias)
    an_alias(front, "order", CLOUD)
    front.metrics.sweep()
    assert value(front.registry, "weft_gateway_aliased_total", **alias) is None
    assert 1 == value(front.registry, "gen_ai_server_request_duration_seconds_count", **labels)


def value(registry: CollectorRegistry, sample: str, **labels: str) -> float | None:
    return registry.get_sample_value(sample, labels)
