"""The admin API of a real gateway process; the test answers as the registry and the reconciler would."""

import asyncio
import base64
import hashlib
import json
import time
from typing import Any

import httpx
from weft_contracts.commit import Commit
from weft_contracts.digest import revision_digest
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.node import Approved, Joined
from weft_contracts.facts.request import (
    ApprovalRequested,
    DeployRequested,
    Fulfilled,
    JoinRequested,
    Rejected,
)
from weft_contracts.facts.token import Created
from weft_contracts.ids import ModelId, NodeId, node_id_of, token_hash, token_id
from weft_contracts.subjects import model, node, token
from weft_eventlog.credentials import put_credential
from weft_identity.nkey import KeyPair, Role

from .owners import owners

World = Any
SPEC = {"source": {"kind": "simulated"}, "engine": "simulated"}
SOURCES: list[tuple[dict[str, str], str]] = [
    ({"kind": "hf", "repository": "../etc"}, "want OWNER/NAME, such as Qwen/Qwen3-0.6B"),
    ({"kind": "hf", "repository": "a/b", "revision": "../x"}, "want a branch, a tag or a commit"),
    ({"kind": "hf", "repository": "a/b", "branch": "main"}, "is not a field that is known here"),
    ({"kind": "https", "url": "https://me:secret@models.example/m.gguf"}, "holds a user or a password"),
    ({"kind": "https", "url": "https://models.example/m.gguf?token=1"}, "holds token in its query"),
    ({"kind": "https", "url": "https://models.example/m.gguf#a"}, "holds a fragment"),
    ({"kind": "s3", "bucket": "Models", "key": "m.gguf"}, "want 3 to 63 of a-z"),
    ({"kind": "s3", "bucket": "models", "key": "m.gguf", "endpoint": "ftp://x"}, "want https://HOST[:PORT]"),
    ({"kind": "ftp", "url": "ftp://models.example/m.gguf"}, "'hf'"),
    ({"kind": "hf", "repository": "Qwen/Qwen3-0.6B-GGUF"}, "wait until the whole mesh reads them"),
]
"""Sources and what is said of them; the last one is right, in a mesh whose formats are not raised."""


def answer(commit: Any, fact: Any) -> list[Commit]:
    def both(aggregate: Any, *facts: Any, **result: str) -> list[Commit]:
        done = Commit(commit.aggregate, (Fulfilled(result=result),), commit.guard, commit.cause)
        return [Commit(aggregate, facts, None, commit.cause), done]

    match fact:
        case DeployRequested(name="taken"):
            no = Rejected(status=422, reason="The file /x is no GGUF on node node-1.")
            return [Commit(commit.aggregate, (no,), commit.guard, commit.cause)]
        case DeployRequested(name="ignored"):
            return []
        case DeployRequested(name=name, spec=spec):
            id = ModelId(f"m-{commit.aggregate.key[2:]}")
            accepted = SpecAccepted(name=name, revision=1, digest=revision_digest(spec), spec=spec)
            return both(model(id), accepted, model=id, revision="1")
        case JoinRequested():
            id = node_id_of(KEY.public)
            joined = Joined(
                name=fact.name,
                public_key=fact.public_key,
                token=fact.token,
                addresses=fact.addresses,
                signed_at=fact.signed_at,
            )
            return both(node(id), joined, node=id)
        case ApprovalRequested(node=id):
            return both(node(id), Approved(by="anonymous"), node=id)
        case _:
            return []


KEY = KeyPair.new(Role.USER)


async def test_a_post_sent_twice_with_one_key_makes_one_model(world: World) -> None:
    await world.a_gateway(WEFT_OUTCOME_WAIT_S="3")
    async with owners(world, answer) as asked, httpx.AsyncClient(base_url=world.url, timeout=30) as client:

        async def deploy(name: str, key: str | None) -> httpx.Response:
            headers = {"idempotency-key": key} if key else {}
            return await client.post("/api/models", json={"name": name, "spec": SPEC}, headers=headers)

        first, second = await asyncio.gather(deploy("one", "k1"), deploy("one", "k1"))
        third = await deploy("one", "k1")
        assert [201, 201, 201] == [first.status_code, second.status_code, third.status_code]
        assert first.json() == second.json() == third.json()
        assert 1 == len(asked)
        other = await deploy("two", "k1")
        assert 422 == other.status_code
        assert "application/problem+json" == other.headers["content-type"]
        assert "was used for another request" in other.json()["detail"]
        assert 1 == len(asked)

        request = first.json()["request"]
        shown = (await client.get(f"/api/requests/{request}")).json()
        assert ("fulfilled", "deploy_requested", "one") == (shown["state"], shown["type"], shown["asked"]["name"])
        models = [model["id"] for model in (await client.get("/v1/models")).json()["data"]]
        assert ["one"] == models
        assert "one" == (await client.get("/api/models/one")).json()["name"]
        assert "one" == (await client.get(f"/api/models/{first.json()['model']}")).json()["name"]

        refused = await deploy("taken", None)
        assert 422 == refused.status_code
        assert "The file /x is no GGUF on node node-1." == refused.json()["detail"]
        late = await deploy("ignored", None)
        assert 504 == late.status_code
        assert "pending" == (await client.get(late.headers["location"])).json()["state"]


async def test_a_source_that_cannot_be_meant_is_one_sentence(world: World) -> None:
    await world.a_gateway()
    async with httpx.AsyncClient(base_url=world.url) as client:
        for source, said in SOURCES:
            body = {"name": "x", "spec": {"source": source, "engine": "llama.cpp"}}
            answer = await client.post("/api/models", json=body)
            assert (409 if "wait" in said else 400) == answer.status_code, answer.text
            assert said in answer.json()["detail"]


async def test_bad_input_is_one_sentence_in_a_problem_body(world: World) -> None:
    await world.a_gateway()
    cases: list[tuple[str, str, Any, int, str]] = [
        ("POST", "/api/models", b"{", 400, "The body is not JSON: "),
        ("POST", "/api/models", b"", 400, "The body is empty; a JSON object is expected."),
        ("POST", "/api/models", {"name": "x"}, 400, "`spec` is missing."),
        ("POST", "/api/models", {"name": 1, "spec": SPEC}, 400, "`name` does not fit: input should be a valid string."),
        ("POST", "/api/models", {"name": "x", "spec": SPEC, "z": 1}, 400, "`z` is not a field that is known here"),
        (
            "POST",
            "/api/models",
            {"name": "x", "spec": SPEC | {"weights": {}}},
            400,
            "`spec.weights` does not fit: is told of a source of kind upload",
        ),
        ("POST", "/api/models", {"name": "x", "spec": SPEC | {"min_replicas": 3}}, 400, "`spec.min_replicas` is 3"),
        ("POST", "/api/models", {"name": "x", "spec": SPEC | {"engine": "vroom"}}, 400, "`spec.engine` is 'vroom'; it"),
        ("POST", "/api/models", {"name": "x", "spec": SPEC | {"engine": "V"}}, 400, "`spec.engine` does not fit"),
        ("POST", "/api/models", b"x" * (9 << 20), 413, "The body is larger than"),
        ("GET", "/api/nothing", None, 404, "There is no route /api/nothing"),
        ("PUT", "/api/models", None, 405, "/api/models does not take PUT; it takes"),
        ("GET", "/api/models/none", None, 404, "Model 'none' does not exist; there is: none."),
        ("GET", "/api/nodes/none", None, 404, "Node 'none' does not exist."),
        ("GET", "/api/requests/q-none", None, 404, "Request 'q-none' does not exist."),
        ("GET", "/api/events?limit=0", None, 400, "`limit` does not fit"),
        ("GET", "/api/events?kind=x", None, 400, "`kind` is 'x'; it must be one of node, "),
        ("GET", "/api/nodes", None, 503, "no database is set (WEFT_POSTGRES_URL)"),
    ]
    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:
        for method, path, body, status, words in cases:
            content: Any = {"json": body} if body else {}
            if isinstance(body, bytes):
                content = {"content": body, "headers": {"content-type": "application/json"}}
            said = await client.request(method, path, **content)
            assert status == said.status_code, (path, said.text)
            assert "application/problem+json" == said.headers["content-type"]
            assert words in said.json()["detail"], said.text
            assert said.headers["x-request-id"]
        said = await client.get("/api/status", headers={"host": "evil.example"})
        assert 403 == said.status_code
        document = (await client.get("/openapi.json")).json()
        assert {"/v1/chat/completions", "/api/models", "/api/events"} <= set(document["paths"])
        metrics = (await client.get("/metrics")).text
        assert "gen_ai_server_request_duration_seconds" in metrics


async def test_a_machine_joins_with_a_token_and_polls_for_its_credential(world: World) -> None:
    secret = "s" * 43
    await world.tell(token(token_id(secret)), Created(hash=token_hash(secret), approves=False, most_waiting=1))
    await world.a_gateway()
    body = {
        "token": secret,
        "name": "box",
        "public_key": KEY.public,
        "addresses": {"host": "10.0.0.1", "http_port": 9},
    }
    id = node_id_of(KEY.public)

    def signed(key: KeyPair, nonce: str) -> dict[str, str]:
        signature = key.sign(f"weft-credential:{id}:{nonce}".encode())
        return {"node": id, "nonce": nonce, "signature": base64.b64encode(signature).decode()}

    def registration(said: dict[str, Any], key: KeyPair = KEY, nonce: str = "") -> dict[str, Any]:
        content, nonce = json.dumps(said).encode(), nonce or str(int(time.time()))
        signature = key.sign(f"weft-register:{nonce}:{hashlib.sha256(content).hexdigest()}".encode())
        shown = {"weft-nonce": nonce, "weft-signature": base64.b64encode(signature).decode()}
        return {"content": content, "headers": {**shown, "content-type": "application/json"}}

    async with owners(world, answer), httpx.AsyncClient(base_url=world.url, timeout=30) as client:
        refused: tuple[tuple[dict[str, Any], str], ...] = (
            ({"json": body}, "not_signed"),
            (registration(body, KeyPair.new(Role.USER)), "bad_signature"),
            (registration(body, nonce="1"), "stale_nonce"),
            (registration(body) | {"content": json.dumps(body | {"name": "other"}).encode()}, "bad_signature"),
        )
        for unsigned, code in refused:
            said = await client.post("/api/node/register", **unsigned)
            assert (401, code) == (said.status_code, said.json()["code"]), said.text
        for wrong, status in (
            (body | {"token": "x"}, 401),
            (body | {"name": "n" * 256}, 400),
            ({k: v for k, v in body.items() if k != "addresses"}, 400),
            (body | {"public_key": "U" + "A" * 55}, 400),
        ):
            said = await client.post("/api/node/register", **registration(wrong))
            assert status == said.status_code, said.text
        said = await client.post("/api/node/register", **registration(body | {"kind": "toaster"}))
        assert (400, "kind") == (said.status_code, said.json()["param"])
        assert "'worker' or 'agent'" in said.json()["detail"]
        sent = registration(body)
        said = await client.post("/api/node/register", **sent)
        assert (202, id) == (said.status_code, said.json()["node"])
        # what was sent once counts once, and this token lets one node wait: nothing more is appended
        head = await world.log.head()
        said = await client.post("/api/node/register", **sent)
        assert (401, "stale_nonce") == (said.status_code, said.json()["code"]), said.text
        another = KeyPair.new(Role.USER)
        said = await client.post(
            "/api/node/register", **registration(body | {"name": "b", "public_key": another.public}, another)
        )
        assert (429, "too_many") == (said.status_code, said.json()["code"]), said.text
        assert 1 <= int(said.headers["retry-after"]) <= 60
        assert head == await world.log.head()

        now = str(int(time.time()))
        assert 202 == (await client.post("/api/node/credential", json=signed(KEY, now))).status_code
        other = KeyPair.new(Role.USER)
        assert 401 == (await client.post("/api/node/credential", json=signed(other, now))).status_code
        assert 401 == (await client.post("/api/node/credential", json=signed(KEY, "1"))).status_code

        assert 200 == (await client.post("/api/nodes/box/approve")).status_code
        await put_credential(await world.mesh.root(), NodeId(id), b'{"jwt":"x"}')
        said = await client.post("/api/node/credential", json=signed(KEY, now))
        assert (200, {"jwt": "x"}) == (said.status_code, said.json())
        assert "no-store" == said.headers["cache-control"]
        # one of these is let through now and then, whichever comes when the time for one more is over
        guesses = [await client.post("/api/node/register", **registration(body | {"token": "x"})) for _ in range(24)]
        assert 429 in {guess.status_code for guess in guesses}
        assert secret not in world.gateway_log()


async def test_events_come_in_pages_and_as_a_live_stream_from_any_position(world: World) -> None:
    await world.a_node()
    await world.a_model()
    await world.a_gateway()
    head = await world.log.head()
    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:
        first = (await client.get("/api/events?limit=1")).json()
        assert ([1], 1, head) == ([item["sequence"] for item in first["items"]], first["next"], first["head"])
        rest = (await client.get("/api/events?after=1&limit=1000")).json()
        assert list(range(2, head + 1)) == [item["sequence"] for item in rest["items"]]
        assert rest["next"] is None
        only = (await client.get("/api/events?kind=model")).json()["items"]
        assert {"model"} == {item["kind"] for item in only}

        headers = {"accept": "text/event-stream", "last-event-id": "1"}
        async with client.stream("GET", "/api/events", headers=headers) as stream:
            ids: list[int] = []
            told = False
            async for line in stream.aiter_lines():
                if line.startswith("id: "):
                    ids.append(int(line[4:]))
                if len(ids) == head - 1 and not told:
                    told = True
                    await world.deleted()
                if len(ids) == head:
                    break
        assert list(range(2, head + 2)) == ids
