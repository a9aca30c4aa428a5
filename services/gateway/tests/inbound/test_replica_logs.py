"""`GET /api/replicas/{id}/logs`: a real gateway application, and a node that does what a test says."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId, TokenId, replica_id
from weft_contracts.subjects import model, node, replica
from weft_gateway.inbound.admin import logs
from weft_gateway.inbound.http.application import application
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.keys import Keys
from weft_runtime.web import QuietServer
from weft_testing import HandLog
from weft_testing.served import served

NODE = NodeId("n-aaaaaaaaaaaaaaaa")
MODEL = ModelId("m-aaaaaaaaaaaaaaaa")
PLACED, HOMELESS = replica_id(MODEL, 1), replica_id(MODEL, 2)
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def whole(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)


class Node:
    """A node's server: answers each request with these bytes, then closes, or waits until the client goes."""

    def __init__(self) -> None:
        self.says: list[bytes] = []
        self.stays = False
        self.asked: list[str] = []
        self.left = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode().split(" ")[1])
        for each in self.says:
            writer.write(each)
            await writer.drain()
            await asyncio.sleep(0.01)
        if self.stays:
            await reader.read()
            self.left.set()
        writer.close()


@pytest.fixture
async def far() -> AsyncIterator[Node]:
    """The node that the replica runs on."""
    node = Node()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    node.port = server.sockets[0].getsockname()[1]
    yield node
    server.close()


def given(http_port: int) -> Directory:
    """A mesh of one node and two replicas, one of which was placed."""
    log, directory = HandLog(), Directory()
    log.listen(lambda commit: directory.fold([commit]))
    addresses = Addresses(host="127.0.0.1", http_port=http_port)
    joined = Joined(name="node-1", public_key="U", token=TokenId("t-x"), addresses=addresses)
    log.given(node(NODE), joined, Approved(by="t-x"), Healthy())
    spec = ModelSpec(source=SimulatedSource(), engine="simulated")
    log.given(model(MODEL), SpecAccepted(name="sim", revision=1, digest="d", spec=spec))
    log.given(model(MODEL), Scaled(revision=1, add=(PLACED, HOMELESS), why="wanted"))
    member = Member(node=NODE, rank=0, devices=(DeviceClaim(index=0, bytes=1),))
    log.given(replica(PLACED), Placed(model=MODEL, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
    log.given(replica(HOMELESS), Unplaceable(model=MODEL, revision=1, reason="no node has 3 GiB free", receipt=RECEIPT))
    assigned = Assigned(
        replica=PLACED, model=MODEL, model_name="sim", revision=1, digest="d", epoch=1, members=(member,), spec=spec
    )
    log.given(node(NODE), assigned)
    return directory


@pytest.fixture
async def front(far: Node) -> AsyncIterator[tuple[httpx.AsyncClient, logs.ReplicaLogs]]:
    """A client of a gateway's application, and the route."""
    route = logs.ReplicaLogs(given(far.port))
    app = application(
        [route.router], [], authenticator=Authenticator("local", Keys(), lambda: True), max_body=1 << 20, instance="gw"
    )
    server = QuietServer(uvicorn.Config(app, ws="none", lifespan="off", log_config=None, host="127.0.0.1", port=0))
    async with served(server) as client:
        yield client, route


Front = tuple[httpx.AsyncClient, logs.ReplicaLogs]
PATH = f"/api/replicas/{PLACED}/logs"


async def test_a_tail_is_fetched_from_the_replicas_node_and_comes_as_plain_text(front: Front, far: Node) -> None:
    far.says = [CHUNKED, chunk(b"one\n"), chunk("zwölf\n".encode()), chunk(b"")]
    answer = await front[0].get(PATH, params={"tail": 2})
    assert (200, "one\nzwölf\n") == (answer.status_code, answer.text)
    assert [f"/logs/{PLACED}?tail=2&follow=false"] == far.asked


async def test_what_is_followed_comes_as_it_is_said_and_is_let_go_with_the_client(front: Front, far: Node) -> None:
    far.says, far.stays = [CHUNKED, chunk(b"data: one\n\n"), chunk(b": quiet\n\n")], True
    async with front[0].stream("GET", PATH, params={"follow": "true"}) as answer:
        assert "text/event-stream" == answer.headers["content-type"].partition(";")[0]
        lines = (line async for line in answer.aiter_lines() if line)
        assert ["data: one", ": quiet"] == [await anext(lines), await anext(lines)]
        assert 1 == len(front[1]._followed)
    async with asyncio.timeout(30):
        await far.left.wait()
        while front[1]._followed:
            await asyncio.sleep(0.01)


async def test_a_node_that_breaks_off_is_an_event_and_a_gateway_that_stops_ends_the_stream(
    front: Front, far: Node
) -> None:
    far.says = [CHUNKED, chunk(b"data: one\n\n")]
    broken = (await front[0].get(PATH, params={"follow": "true"})).text
    assert "data: one\n\nevent: error" == broken[: broken.rindex("error") + 5]
    assert "Node node-1 broke the answer off." == json.loads(broken[broken.index("{") :])["detail"]

    far.stays = True
    async with front[0].stream("GET", PATH, params={"follow": "true"}) as answer:
        lines = (line async for line in answer.aiter_lines() if line)
        assert "data: one" == await anext(lines)
        front[1].stop()
        assert [] == [line async for line in lines if not line.startswith(("event: error", "data: {"))]


@pytest.mark.parametrize(
    ("path", "status", "names"),
    [
        ("/api/replicas/m-none-1/logs", 404, "does not exist"),
        (f"/api/replicas/{HOMELESS}/logs", 404, "no node has 3 GiB free"),
        (f"{PATH}?node=n-other", 404, NODE),
        (f"{PATH}?tail=-1", 400, "tail"),
        (f"{PATH}?tail=10001", 400, "tail"),
        (f"{PATH}?follow=perhaps", 400, "follow"),
        ("/api/replicas/..%2f..%2fhealthz/logs", 404, "There is no route"),
    ],
)
async def test_what_cant_be_answered_is_one_sentence_and_no_node_is_asked(
    front: Front, far: Node, path: str, status: int, names: str
) -> None:
    answer = await front[0].get(path)
    assert status == answer.status_code
    assert names in answer.json()["detail"]
    assert [] == far.asked


@pytest.mark.parametrize(
    ("says", "status", "detail"),
    [
        ([whole(404, b"{}")], 404, "Node node-1 has no log of"),
        ([whole(503, b"{}")], 503, "too many"),
        ([whole(302, b"elsewhere")], 502, "answered 302"),
        ([b"SSH-2.0-x\r\n"], 502, "does not answer in HTTP"),
        ([], 502, "broke the answer off"),
        ([CHUNKED, chunk(b"half")], 502, "broke the answer off"),
        ([CHUNKED, chunk(b"x" * (1 << 20)) * 5], 502, "sends more than"),
    ],
)
async def test_a_node_that_answers_otherwise_is_named(
    front: Front, far: Node, says: list[bytes], status: int, detail: str
) -> None:
    far.says = says
    answer = await front[0].get(PATH)
    assert status == answer.status_code
    assert detail in answer.json()["detail"]


async def test_a_node_that_is_away_is_named(far: Node) -> None:
    taken = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    taken.close()
    await taken.wait_closed()
    authenticator = Authenticator("anyone", Keys(), lambda: True)
    app = application(
        [logs.ReplicaLogs(given(port)).router], [], authenticator=authenticator, max_body=1024, instance="gw"
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://gw") as client:
        answer = await client.get(PATH)
    assert 502 == answer.status_code
    assert "Node node-1 takes no connection" in answer.json()["detail"]
