"""Files that are sent to a node, over a real socket: in order, resumed, verified, and none that isn't waited for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import uvicorn
from blake3 import blake3
from starlette.applications import Starlette
from weft_contracts.digest import files_digest
from weft_contracts.facts.node import FilesWanted
from weft_contracts.facts.source import SourceFile, UploadSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ReplicaId
from weft_contracts.uploads import CHECKSUM_HEADER
from weft_files.store import Store
from weft_runtime.web import QuietServer
from weft_sources.environment import source_settings
from weft_testing.served import served
from weft_worker_agent.inbound.uploads import Uploads
from weft_worker_agent.outbound.files.arrivals import Arrivals, NotSent
from weft_worker_agent.outbound.files.file_source import wanted_file
from weft_worker_agent.outbound.files.model_fetches import FetchFailed
from weft_worker_agent.outbound.files.node_files import NodeFiles
from weft_worker_agent.outbound.files.source_secrets import SourceSecrets

BODY = bytes(range(200))
REPLICA = ReplicaId("m-x-1")


def file_of(body: bytes = BODY, name: str = "m.gguf") -> SourceFile:
    return SourceFile(name=name, size=len(body), checksum=f"blake3:{blake3(body).hexdigest()}")


def spec_of(*files: SourceFile) -> ModelSpec:
    return ModelSpec(source=UploadSource(name=files[0].name), engine="llama.cpp", files=files)


SPEC = spec_of(file_of())


class Node:
    """What a node has of files, and its server."""

    def __init__(self, folder: Path) -> None:
        secrets = SourceSecrets(source_settings())
        self.files = NodeFiles(folder, secrets, at_once=1, most_bytes=None, changed=lambda: None)
        self.uploads = Uploads(self.files.arrivals, self.files.fetches, silence_s=5.0)
        self.client = httpx.AsyncClient()
        self.waits: asyncio.Task[Path] | None = None

    async def awaits(self, spec: ModelSpec = SPEC) -> None:
        """A replica was assigned to it, whose files are to be sent."""
        self.waits = asyncio.create_task(self.files.fetches.want(spec, REPLICA))
        async with asyncio.timeout(10):
            while self.files.arrivals.open(files_digest(spec), spec.files[0].name) is None and not self.waits.done():
                await asyncio.sleep(0.005)

    async def put(
        self, said: str, body: bytes = b"", *, spec: ModelSpec = SPEC, name: str = "", checksum: str = ""
    ) -> httpx.Response:
        headers = {"content-range": said} | ({CHECKSUM_HEADER: checksum} if checksum else {})
        path = f"/uploads/{files_digest(spec)}/{name or spec.files[0].name}"
        return await self.client.put(path, content=body, headers=headers)


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.headers.get("range", "")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(tmp_path / "files")
    app = Starlette(routes=[made.uploads.route])
    server = QuietServer(uvicorn.Config(app, ws="none", lifespan="off", log_config=None, host="127.0.0.1", port=0))
    async with served(server) as client:
        made.client = client
        yield made
    if made.waits is not None:
        made.waits.cancel()
        with suppress(asyncio.CancelledError, FetchFailed):
            await made.waits
    await made.files.close()


async def test_two_halves_make_the_file(node: Node) -> None:
    await node.awaits()
    assert (308, "") == told(await node.put("bytes */200"))
    assert (308, "bytes=0-99") == told(await node.put("bytes 0-99/200", BODY[:100]))
    assert (308, "bytes=0-99") == told(await node.put("bytes */200"))
    assert [("upload:m.gguf", 100, 200)] == [(s.source, s.fetched, s.total) for s in node.files.fetches.said()]
    whole = await node.put("bytes 100-199/200", BODY[100:])
    assert (200, {"bytes": 200, "size": 200}) == (whole.status_code, whole.json())
    assert node.waits is not None
    assert BODY == (await node.waits / "m.gguf").read_bytes()
    # and then nothing is sent
    assert 200 == (await node.put("bytes */200")).status_code
    assert 200 == (await node.put("bytes 0-199/200", BODY)).status_code


async def test_what_does_not_begin_behind_what_is_there_is_told_where_that_ends(node: Node) -> None:
    await node.awaits()
    await node.put("bytes 0-99/200", BODY[:100])
    for start in (150, 50):
        refused = await node.put(f"bytes {start}-199/200", BODY[start:])
        assert (416, "bytes=0-99") == told(refused)
        assert "has 100 bytes here" in refused.json()["detail"]


async def test_another_content_or_size_midway_is_refused_and_what_is_there_stays(node: Node) -> None:
    await node.awaits()
    await node.put("bytes 0-99/200", BODY[:100])
    other = await node.put("bytes 100-199/200", BODY[100:], checksum=f"blake3:{'a' * 64}")
    assert (409, True) == (other.status_code, "deploy it again" in other.json()["detail"])
    assert 409 == (await node.put("bytes 100-200/201", BODY[100:] + b"x")).status_code
    assert 308 == (await node.put("bytes */200", checksum=SPEC.files[0].checksum)).status_code
    assert 200 == (await node.put("bytes 100-199/200", BODY[100:])).status_code


async def test_a_file_that_is_not_what_was_said_is_refused_and_nothing_of_it_stays(node: Node, tmp_path: Path) -> None:
    await node.awaits()
    wrong = await node.put("bytes 0-199/200", b"x" + BODY[1:])
    assert (400, True) == (wrong.status_code, "nothing of it was kept" in wrong.json()["detail"])
    assert (308, "") == told(await node.put("bytes */200"))
    assert [] == [path for path in (tmp_path / "files" / "blobs").rglob("*") if path.is_file()]
    assert 200 == (await node.put("bytes 0-199/200", BODY)).status_code


@pytest.mark.parametrize("said", ["", "bytes 0-99", "bytes 9-3/200", "bytes 0-200/200", "items 0-99/200"])
async def test_a_range_that_is_none_is_refused_with_a_sentence(node: Node, said: str) -> None:
    await node.awaits()
    refused = await node.put(said, BODY[:1])
    assert (400, True) == (refused.status_code, "content-range is" in refused.json()["detail"])


async def test_more_bytes_than_the_range_says_are_refused_and_fewer_are_kept(node: Node) -> None:
    await node.awaits()
    assert 400 == (await node.put("bytes 0-49/200", BODY[:60])).status_code
    assert (308, "bytes=0-59") == told(await node.put("bytes 0-99/200", BODY[:60]))


@pytest.mark.parametrize("name", ["n.gguf", "..%2Fm.gguf", "%2e%2e", "m.gguf%00"])
async def test_what_no_replica_waits_for_is_not_taken(node: Node, name: str) -> None:
    assert 404 == (await node.put("bytes 0-199/200", BODY)).status_code  # before anything is assigned
    await node.awaits()
    assert 404 == (await node.put("bytes 0-199/200", BODY, name=name)).status_code
    assert 404 == (await node.put("bytes 0-199/200", BODY, spec=spec_of(file_of(BODY[1:])))).status_code


async def begun(node: Node, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A sender that announced the whole file and gave this of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.client.base_url.port)
    head = f"PUT /uploads/{files_digest(SPEC)}/m.gguf HTTP/1.1\r\nhost: x\r\ncontent-range: bytes 0-199/200\r\n"
    writer.write(head.encode() + b"content-length: 200\r\n\r\n" + body)
    await writer.drain()
    return reader, writer


async def test_a_sender_that_leaves_midway_loses_nothing_that_came(node: Node) -> None:
    await node.awaits()
    _, writer = await begun(node, BODY[:70])
    writer.close()
    async with asyncio.timeout(10):
        while told(await node.put("bytes */200")) != (308, "bytes=0-69"):
            await asyncio.sleep(0.01)
    assert 200 == (await node.put("bytes 70-199/200", BODY[70:])).status_code


async def test_a_sender_that_leaves_with_its_last_byte_has_sent_the_file(node: Node) -> None:
    await node.awaits()
    _, writer = await begun(node, BODY)
    writer.transport.abort()  # it hears no answer
    assert node.waits is not None
    async with asyncio.timeout(10):
        assert BODY == (await node.waits / "m.gguf").read_bytes()


async def test_a_body_of_chunks_of_one_byte_is_taken_like_any(node: Node) -> None:
    body = bytes(10_000)
    spec = spec_of(file_of(body))
    await node.awaits(spec)

    async def one_by_one() -> AsyncIterator[bytes]:
        for each in body:
            yield bytes([each])

    path = f"/uploads/{files_digest(spec)}/m.gguf"
    headers = {"content-range": "bytes 0-9999/10000"}
    assert 200 == (await node.client.put(path, content=one_by_one(), headers=headers)).status_code


async def test_a_sender_that_stalls_is_ended_and_what_came_stays(node: Node) -> None:
    node.uploads._silence_s = 0.1
    await node.awaits()
    reader, writer = await begun(node, BODY[:30])
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert b"HTTP/1.1 408" in answer.partition(b"\r\n")[0]
    assert b"range: bytes=0-29" in answer
    writer.close()


@pytest.mark.parametrize(
    "names", [("m-00001-of-00002.gguf", "m-00002-of-00002.gguf"), ("model.safetensors", "config.json")]
)
async def test_the_files_of_a_model_come_one_after_the_other(node: Node, names: tuple[str, ...]) -> None:
    bodies = {name: bytes([at]) * 50 for at, name in enumerate(names)}
    spec = spec_of(*(file_of(body, name) for name, body in bodies.items()))
    first, second = bodies
    await node.awaits(spec)
    early = await node.put("bytes 0-49/50", bodies[second], spec=spec, name=second)
    assert (503, "1") == (early.status_code, early.headers["retry-after"])
    assert 200 == (await node.put("bytes 0-49/50", bodies[first], spec=spec, name=first)).status_code
    async with asyncio.timeout(10):
        while 200 != (await node.put("bytes 0-49/50", bodies[second], spec=spec, name=second)).status_code:
            await asyncio.sleep(0.01)
    assert node.waits is not None
    folder = await node.waits
    assert bodies == {name: (folder / name).read_bytes() for name in bodies}
    assert 200 == (await node.put("bytes */50", spec=spec, name=first)).status_code


async def test_a_file_that_is_here_under_another_name_is_not_waited_for(node: Node) -> None:
    await node.awaits()
    await node.put("bytes 0-199/200", BODY)
    assert node.waits is not None
    await node.waits
    other = spec_of(file_of(name="other.gguf"))
    folder = await node.files.fetches.want(other, REPLICA)
    assert BODY == (folder / "other.gguf").read_bytes()
    assert 200 == (await node.put("bytes */200", spec=other)).status_code


async def test_the_next_agent_goes_on_with_what_came(tmp_path: Path) -> None:
    piece = 16 << 20
    body = b"w" * (piece + 10)
    spec = spec_of(file_of(body))
    for last in (False, True):
        node = Node(tmp_path / "files")
        await node.awaits(spec)
        arrival = node.files.arrivals.open(files_digest(spec), "m.gguf")
        assert arrival is not None
        assert (piece if last else 0) == arrival.there
        await arrival.take(arrival.there, body[arrival.there : arrival.there + piece + 5])
        if last:
            await arrival.finish()
            assert node.waits is not None
            assert body == (await node.waits / "m.gguf").read_bytes()
        await node.files.close()
        if not last:
            assert node.waits is not None
            with pytest.raises(asyncio.CancelledError):
                await node.waits


async def test_what_is_not_sent_ends_with_a_sentence_and_what_drips_as_well(tmp_path: Path) -> None:
    arrivals = Arrivals(Store(tmp_path / "files", keep_free=0), silence_s=0.2, look_s=0.02)
    waits = asyncio.create_task(arrivals.wait("d", wanted_file(file_of(bytes(10_000))), lambda _: None))
    async with asyncio.timeout(10):
        while (arrival := arrivals.open("d", "m.gguf")) is None:
            await asyncio.sleep(0.005)
        with suppress(Exception):
            while True:  # far less than 4,096 bytes a second
                await arrival.take(arrival.there, b"\0")
                await asyncio.sleep(0.05)
    with pytest.raises(NotSent, match=r"m.gguf was not sent: \d+ of its 10000 bytes are here.*deploy it again"):
        await waits
    assert arrivals.open("d", "m.gguf") is None


async def test_what_can_be_had_elsewhere_by_now_is_waited_for_no_more_while_nothing_comes(tmp_path: Path) -> None:
    arrivals = Arrivals(Store(tmp_path / "files", keep_free=0), look_s=0.01)
    there = asyncio.Event()

    async def elsewhere() -> bool:
        return there.is_set()

    waits = asyncio.create_task(arrivals.wait("d", wanted_file(file_of()), lambda _: None, elsewhere))
    async with asyncio.timeout(10):
        while (arrival := arrivals.open("d", "m.gguf")) is None:
            await asyncio.sleep(0.005)
        await arrival.take(0, BODY[:100])
        there.set()
        assert await waits is None
    assert arrivals.open("d", "m.gguf") is None


async def test_a_node_without_room_says_so_before_a_byte_comes(tmp_path: Path) -> None:
    node = Node(tmp_path / "files")
    huge = file_of().model_copy(update={"size": 1 << 50})
    with pytest.raises(FetchFailed, match="stay free") as failed:
        await node.files.fetches.want(spec_of(huge), REPLICA)
    assert (True, False) == (failed.value.no_room, failed.value.permanent)
    await node.files.close()


async def test_what_nobody_sends_in_time_may_come_at_another_try(tmp_path: Path) -> None:
    node = Node(tmp_path / "files")
    node.files.arrivals._silence_s, node.files.arrivals._look_s = 0.1, 0.02  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(FetchFailed, match="was not sent") as failed:
        await node.files.fetches.want(SPEC, REPLICA)
    assert (False, False) == (failed.value.no_room, failed.value.permanent)
    await node.files.close()


async def test_a_node_that_is_only_to_have_a_sent_file_ahead_waits_for_no_sender(tmp_path: Path) -> None:
    node = Node(tmp_path / "files")
    wish = FilesWanted(files=files_digest(SPEC), source=UploadSource(name="m.gguf"), listed=SPEC.files, bytes=200)
    with pytest.raises(FetchFailed, match="no node that can be asked has it now"):
        await node.files.fetches.ahead(wish)
    assert node.files.arrivals.open(files_digest(SPEC), "m.gguf") is None
    await node.files.close()
