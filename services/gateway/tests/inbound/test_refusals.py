"""What a client is refused: whether asking again can help, and that each refusal is counted as the client saw it."""

from collections import Counter
from typing import Any

import pytest
from openai import AsyncOpenAI, InternalServerError
from weft_contracts.facts.replica import Unplaceable
from weft_contracts.ids import replica_id
from weft_contracts.subjects import replica
from weft_gateway.inbound.http.error_metrics import route_label
from weft_gateway.inbound.inference.limits import Limits

from .conftest import MODEL, RECEIPT, Front

Fronts = Any
CHAT: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "hi"}]}


def counted(front: Front) -> Counter[tuple[int, str]]:
    """What the metrics say, by status and route."""
    found: Counter[tuple[int, str]] = Counter()
    for metric in front.registry.collect():
        for sample in metric.samples:
            if sample.name == "weft_gateway_refused_total":
                found[int(sample.labels["status"]), sample.labels["route"]] = int(sample.value)
    return found


def can_not_be_served(front: Front) -> None:
    front.unservable("no GGUF file")


def has_no_place(front: Front) -> None:
    front.wants(1)
    fact = Unplaceable(model=MODEL, revision=1, reason="no room", receipt=RECEIPT)
    front.log.given(replica(replica_id(MODEL, 1)), fact)


@pytest.mark.parametrize("given", [can_not_be_served, has_no_place])
async def test_what_can_not_be_served_is_refused_for_good(fronts: Fronts, given: Any) -> None:
    front = await fronts.open()
    given(front)
    wire = await fronts.connect(front)
    for path, body in (("/v1/chat/completions", CHAT), ("/v1/completions", {"model": "sim", "prompt": "hi"})):
        wire.post(body, path=path)
        said = await wire.answer()
        assert (503, "not_served") == (said.status, said.json()["error"]["code"])
        assert "false" == said.headers["x-should-retry"]
        assert "retry-after" not in said.headers


async def test_openais_client_asks_once_where_asking_again_is_no_use(fronts: Fronts) -> None:
    front = await fronts.open()
    front.unservable("no GGUF file")
    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{front.port}/v1", api_key="none", max_retries=2)
    with pytest.raises(InternalServerError, match="no GGUF file"):
        await client.chat.completions.create(**CHAT)
    await client.close()
    assert {(503, "chat"): 1} == counted(front)


async def test_what_may_still_come_is_worth_asking_again(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=0.05))
    front.a_loading_replica()
    wire = await fronts.connect(front)
    wire.post(CHAT)
    said = await wire.answer()
    assert (503, "5") == (said.status, said.headers["retry-after"])
    assert "x-should-retry" not in said.headers


async def test_all_that_is_refused_is_counted_as_the_client_saw_it(fronts: Fronts) -> None:
    front = await fronts.open(Limits(loading_wait=0.05, busy_wait=0.05, resume_wait=1), concurrency=1, max_body=2000)
    saw: Counter[tuple[int, str]] = Counter()

    async def ask(route: str, data: Any, **more: Any) -> None:
        wire = await fronts.connect(front)
        wire.send(data) if isinstance(data, bytes) else wire.post(data, **more)
        said = await wire.answer()
        assert said.status >= 400
        saw[said.status, route] += 1

    await ask("chat", CHAT)  # nothing is ready: 503
    busy = await front.a_replica()
    running = await fronts.connect(front)
    running.post(CHAT)
    await busy.engine.has(1)
    await ask("chat", CHAT)  # 529
    await ask("chat", CHAT | {"model": "none"})  # 404
    await ask("chat", CHAT | {"stream": True})  # 529, before a stream begins
    await ask("chat", {"model": "sim"})  # 400
    await ask("chat", CHAT, headers={"origin": "http://elsewhere.example"})  # 403
    await ask("chat", CHAT | {"user": "x" * 3000})  # 413
    await ask("chat", CHAT, headers={"content-encoding": "gzip"})  # 415
    await ask("completion", {"model": "sim"}, path="/v1/completions")
    await ask("embedding", {"model": "sim", "input": "hi"}, path="/v1/embeddings")
    await ask("v1", b"GET /v1/nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await ask("v1", b"PUT /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n")
    await ask("api", b"GET /api/nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await ask("other", b"GET /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await ask("other", b"this is not http\r\n\r\n")

    assert {400, 403, 404, 405, 413, 415, 503, 529} == {status for status, _ in saw}
    assert saw == counted(front)
    busy.engine.finish_all()
    assert 200 == (await running.answer()).status
    assert saw == counted(front)


async def test_who_bears_no_key_is_counted(fronts: Fronts) -> None:
    front = await fronts.open(policy="keys")
    wire = await fronts.connect(front)
    wire.post(CHAT)
    assert 401 == (await wire.answer()).status
    wire.send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
    assert 401 == (await wire.answer()).status
    assert {(401, "chat"): 1, (401, "v1"): 1} == counted(front)


def test_paths_that_clients_make_up_add_no_labels() -> None:
    made_up = ("/v1/x", "/v1", "/api/nodes/9", "/v2/x", "", "*", "//v1", "/v1x", "/api", "/metrics")
    assert ["v1", "v1", "api", "other", "other", "other", "other", "other", "api", "other"] == [
        *map(route_label, made_up)
    ]
