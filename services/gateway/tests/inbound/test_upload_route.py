"""`PUT /api/uploads/…`: a real gateway application, and a node's server that does what a test says."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx
import pytest
import uvicorn
from weft_contracts.digest import files_digest
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Fetching
from weft_contracts.facts.source import SourceFile, UploadSource
from weft_contracts.facts.values import Addresses, DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId, TokenId, replica_id
from weft_contracts.subjects import model, node, replica, run
from weft_contracts.uploads import CHECKSUM_HEADER, MOST_CHUNK
from weft_gateway.inbound.admin import uploads
from weft_gateway.inbound.http.application import application
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.keys import Keys
from weft_runtime.web import QuietServer
from weft_testing import HandLog
from weft_testing.served import served

NODE, MODEL = NodeId("n-aaaaaaaaaaaaaaaa"), ModelId("m-aaaaaaaaaaaaaaaa")
REPLICA = replica_id(MODEL, 1)
FILE = SourceFile(name="m.gguf", size=200, checksum="blake3:" + "a" * 64)
SPEC = ModelSpec(source=UploadSource(name="m.gguf"), engine="llama.cpp", files=(FILE,))
PATH = f"/api/uploads/{files_digest(SPEC)}/m.gguf"
BODY = bytes(range(200))
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="t", decided_at=0.0, refusals={}, candidates=()
)


@dataclass
class Node:
    """A node's server: keeps what comes, and says what it is told to, else what a node says."""

    says: tuple[int, dict[str, str], object] | None = None
    early: bool = False
    """It answers before it reads the body."""
    deaf: asyncio.Event | None = None
    """While it isn't set, it reads nothing."""
    busy: asyncio.Event | None = None
    """While it isn't set, it answers no question."""
    port: int = 0
    kept: bytes = b""
    heads: list[str] = field(default_factory=list[str])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            if self.deaf is not None:
                await self.deaf.wait()
            if self.busy is not None and "bytes */" in head:
                await self.busy.wait()
            length = int(re.findall(r"content-length: (\d+)", head)[0])
            while not self.early and length and (data := await reader.read(min(length, 1 << 16))):
                self.kept += data
                length -= len(data)
            if length and not self.early:
                return
            status, headers, body = self.says or self._ordinary()
            content = json.dumps(body).encode()
            lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
            writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(content)}\r\n{''.join(lines)}\r\n".encode())
            writer.write(content)
            await writer.drain()
        finally:
            writer.close()

    def _ordinary(self) -> tuple[int, dict[str, str], object]:
        there = len(self.kept)
        whole = there == FILE.size
        return (
            200 if whole else 308,
            {} if whole or not there else {"range": f"bytes=0-{there - 1}"},
            {"bytes": there, "size": FILE.size},
        )


@pytest.fixture
async def far() -> AsyncIterator[Node]:
    node = Node()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    node.port = server.sockets[0].getsockname()[1]
    yield node
    server.close()


def given(port: int, spec: ModelSpec = SPEC) -> Directory:
    """A mesh of one node, which waits for the files of a model."""
    log, directory = HandLog(), Directory()
    log.listen(lambda commit: directory.fold([commit]))
    joined = Joined(
        name="node-1", public_key="U", token=TokenId("t-x"), addresses=Addresses(host="127.0.0.1", http_port=port)
    )
    log.given(node(NODE), joined, Approved(by="t-x"), Healthy())
    log.given(model(MODEL), SpecAccepted(name="sent", revision=1, digest="d", spec=spec))
    log.given(model(MODEL), Scaled(revision=1, add=(REPLICA,), why="wanted"))
    member = Member(node=NODE, rank=0, devices=(DeviceClaim(index=0, bytes=1),))
    log.given(replica(REPLICA), Placed(model=MODEL, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
    assigned = Assigned(
        replica=REPLICA, model=MODEL, model_name="sent", revision=1, digest="d", epoch=1, members=(member,), spec=spec
    )
    log.given(node(NODE), assigned)
    log.given(run(NODE, REPLICA), Fetching(epoch=1, bytes=spec.files[0].size))
    return directory


@asynccontextmanager
async def fronted(
    directory: Directory, authenticator: Authenticator, bounds: uploads.Bounds | None = None
) -> AsyncGenerator[httpx.AsyncClient]:
    route = uploads.Uploads(directory, bounds=bounds)
    app = application([route.router], [], authenticator=authenticator, max_body=1 << 20, instance="gw")
    server = QuietServer(uvicorn.Config(app, ws="none", lifespan="off", log_config=None, host="127.0.0.1", port=0))
    async with served(server) as client:
        yield client


@pytest.fixture
async def front(far: Node) -> AsyncIterator[httpx.AsyncClient]:
    async with fronted(given(far.port), Authenticator("local", Keys(), lambda: True)) as client:
        yield client


async def put(front: httpx.AsyncClient, said: str, body: bytes = b"", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await front.put(PATH, content=body, headers={"content-range": said, **named})


def detail(answer: httpx.Response) -> str:
    return str(answer.json()["detail"])


async def test_halves_are_handed_on_and_answered_as_the_node_does(front: httpx.AsyncClient, far: Node) -> None:
    asked = await put(front, "bytes */200")
    assert (308, False, {"bytes": 0, "size": 200}) == (asked.status_code, "range" in asked.headers, asked.json())
    half = await put(front, "bytes 0-99/200", BODY[:100])
    assert (308, "bytes=0-99") == (half.status_code, half.headers["range"])
    whole = await put(front, "bytes 100-199/200", BODY[100:], weft_checksum=FILE.checksum)
    assert (200, {"bytes": 200, "size": 200}) == (whole.status_code, whole.json())
    assert BODY == far.kept
    assert f"PUT /uploads/{files_digest(SPEC)}/m.gguf HTTP/1.1" == far.heads[0].partition("\r\n")[0]
    assert all(f"{CHECKSUM_HEADER}: {FILE.checksum}\r\n" in head for head in far.heads)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (416, {"range": "bytes=0-99"}, 416),
        (400, {}, 400),
        (409, {}, 409),
        (507, {}, 507),
        (404, {}, 503),
        (503, {"retry-after": "1"}, 503),
        (403, {}, 502),
        (500, {}, 502),
    ],
)
async def test_a_nodes_refusal_is_told_with_its_name(
    front: httpx.AsyncClient, far: Node, status: int, headers: dict[str, str], expected: int
) -> None:
    far.says = (status, headers, {"detail": "it has its reasons"})
    refused = await put(front, "bytes 0-99/200", BODY[:100])
    assert (expected, headers.get("range")) == (refused.status_code, refused.headers.get("range"))
    assert "Node node-1" in detail(refused)
    assert "it has its reasons" in detail(refused)
    assert (expected == 503) == ("retry-after" in refused.headers)


@pytest.mark.parametrize("body", [["no object"], {"bytes": "many"}, {}, "text"])
async def test_a_node_that_talks_nonsense_is_a_bad_node(front: httpx.AsyncClient, far: Node, body: object) -> None:
    far.says = (200, {}, body)
    assert 502 == (await put(front, "bytes */200")).status_code
    far.says = (308, {"range": "bytes=7"}, {"bytes": 0, "size": 200})
    assert 502 == (await put(front, "bytes */200")).status_code


async def test_what_is_not_the_file_that_was_told_reaches_no_node(front: httpx.AsyncClient, far: Node) -> None:
    other = await put(front, "bytes 0-99/200", BODY[:100], weft_checksum=f"blake3:{'b' * 64}")
    assert (409, True) == (other.status_code, "deploy it again" in detail(other))
    assert 409 == (await put(front, "bytes 0-99/201", BODY[:100])).status_code
    assert 404 == (await front.put("/api/uploads/0000/m.gguf", headers={"content-range": "bytes */200"})).status_code
    for said in ("", "bytes 5-1/200", "bytes 0-99"):
        assert 400 == (await put(front, said, BODY[:1])).status_code
    assert 400 == (await put(front, "bytes 0-99/200", BODY[:99])).status_code
    assert [] == far.heads


async def test_a_part_is_bounded_and_says_its_length(front: httpx.AsyncClient, far: Node) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield BODY

    chunked = await front.put(PATH, content=parts(), headers={"content-range": "bytes 0-199/200"})
    assert 411 == chunked.status_code
    reader, writer = await asyncio.open_connection("127.0.0.1", front.base_url.port)
    writer.write(f"PUT {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {MOST_CHUNK + 1}\r\n\r\n".encode())
    async with asyncio.timeout(10):
        assert b" 413 " in await reader.readline()
    writer.close()
    assert [] == far.heads


async def test_questions_that_wait_keep_nobody_from_sending_and_are_bounded_themselves(
    front: httpx.AsyncClient, far: Node
) -> None:
    # given as many questions as a gateway takes, none of which its node answers
    far.busy = asyncio.Event()
    asked = [asyncio.create_task(put(front, "bytes */200")) for _ in range(uploads.ASKED_AT_ONCE)]
    async with asyncio.timeout(30):
        while len(far.heads) < len(asked):
            await asyncio.sleep(0.01)
    # then one more is refused, and what brings bytes is taken
    refused = await put(front, "bytes */200")
    assert (503, "too_many_uploads", "1") == (
        refused.status_code,
        refused.json()["code"],
        refused.headers["retry-after"],
    )
    assert 308 == (await put(front, "bytes 0-99/200", BODY[:100])).status_code
    # and who waited is answered
    far.busy.set()
    assert {308} == {(await each).status_code for each in asked}
    assert 308 == (await put(front, "bytes */200")).status_code


async def test_a_question_waits_for_less_long_than_a_whole_file(far: Node) -> None:
    far.busy = asyncio.Event()
    bounds, local = uploads.Bounds(asked_s=0.2), Authenticator("local", Keys(), lambda: True)
    async with fronted(given(far.port), local, bounds) as front:
        away = await put(front, "bytes */200")
    assert (503, "node_away") == (away.status_code, away.json()["code"])
    far.busy.set()


async def test_a_node_that_answers_early_is_given_no_more(front: httpx.AsyncClient, far: Node) -> None:
    far.says, far.early = (409, {}, {"detail": "no"}), True
    assert 409 == (await put(front, "bytes 0-199/200", BODY)).status_code


async def test_a_node_that_is_away_is_asked_again_soon(front: httpx.AsyncClient, far: Node) -> None:
    async with fronted(given(1), Authenticator("local", Keys(), lambda: True)) as client:
        away = await put(client, "bytes */200")
        assert (503, "node_away", "1") == (away.status_code, away.json()["code"], away.headers["retry-after"])


async def test_a_sender_that_leaves_leaves_the_node_with_what_came(front: httpx.AsyncClient, far: Node) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", front.base_url.port)
    head = f"PUT {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-range: bytes 0-199/200\r\ncontent-length: 200\r\n\r\n"
    writer.write(head.encode() + BODY[:120])
    async with asyncio.timeout(10):
        while len(far.kept) < 120:
            await asyncio.sleep(0.01)
    writer.close()
    half = await put(front, "bytes 120-199/200", BODY[120:])
    assert (200, BODY) == (half.status_code, far.kept)


async def test_a_sender_that_drips_is_left_and_what_came_stays(far: Node) -> None:
    bounds, local = uploads.Bounds(least=1e9, over_s=0.2), Authenticator("local", Keys(), lambda: True)
    async with fronted(given(far.port), local, bounds) as front:
        reader, writer = await asyncio.open_connection("127.0.0.1", front.base_url.port)
        head = f"PUT {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-range: bytes 0-199/200\r\ncontent-length: 200"
        writer.write(f"{head}\r\n\r\n".encode())
        answered = asyncio.ensure_future(reader.readline())
        for each in BODY[:-1]:
            writer.write(bytes((each,)))
            done, _ = await asyncio.wait({answered}, timeout=0.05)
            if done:
                break
        async with asyncio.timeout(10):
            assert b" 408 " in await answered
            assert b"bytes a second" in await reader.readuntil(b"second.")
        writer.close()
    assert far.kept
    assert BODY.startswith(far.kept)


async def test_a_node_that_takes_nothing_holds_its_sender_and_not_the_gateways_memory(far: Node) -> None:
    size = 48 << 20
    file = FILE.model_copy(update={"size": size})
    spec = SPEC.model_copy(update={"files": (file,)})
    far.deaf = asyncio.Event()
    async with fronted(given(far.port, spec), Authenticator("local", Keys(), lambda: True)) as front:
        _, writer = await asyncio.open_connection("127.0.0.1", front.base_url.port)
        path = f"/api/uploads/{files_digest(spec)}/m.gguf"
        head = f"PUT {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-range: bytes 0-{size - 1}/{size}\r\n"
        writer.write(f"{head}content-length: {size}\r\n\r\n".encode())
        sent, piece = 0, bytes(1 << 20)
        with suppress(TimeoutError):
            while sent < size:
                writer.write(piece)
                async with asyncio.timeout(1.0):
                    await writer.drain()
                sent += len(piece)
        assert sent < size // 2  # what sockets hold, and no more
        far.deaf.set()
        writer.transport.abort()


async def test_without_a_key_nothing_is_sent(far: Node) -> None:
    async with fronted(given(far.port), Authenticator("keys", Keys(), lambda: True)) as front:
        assert 401 == (await put(front, "bytes 0-199/200", BODY)).status_code
        assert 401 == (await put(front, "bytes */200", authorization="Bearer weft-no-key")).status_code
    assert [] == far.heads
