"""A bucket keeps the mesh's files: who has one from its source puts it there, and others read it there, verified."""

import asyncio
import hashlib
import random
import socket
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import pytest
from blake3 import blake3
from prometheus_client import REGISTRY
from weft_contracts.facts.source import HfSource, HttpsSource, PathSource, SourceFile, UploadSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ReplicaId
from weft_sources.content_bucket import ContentBucket, bucket_of
from weft_sources.environment import source_settings
from weft_testing.bucket_server import BucketServer, bucket_server
from weft_testing.origin import Origin, Request, head, ranged, serving
from weft_worker_agent.inbound.storing_loop import StoringLoop
from weft_worker_agent.outbound.files.file_source import wanted_file
from weft_worker_agent.outbound.files.model_fetches import FetchFailed

from .mesh_of_nodes import Mesh, Node

ONE = ReplicaId("m-x-1")
FILES = {"a.gguf": random.Random(1).randbytes(300_000), "b.gguf": random.Random(2).randbytes(100_000)}
LISTED = tuple(
    SourceFile(name=name, size=len(body), checksum=f"sha256:{hashlib.sha256(body).hexdigest()}")
    for name, body in FILES.items()
)
KEYS = {f"files/{file.checksum.replace(':', '/')}": FILES[file.name] for file in LISTED}


class Source:
    """A web server with a model of two files."""

    away = False

    def send(self, taken: socket.socket, request: Request) -> None:
        body = FILES.get(request.path.removeprefix("/"))
        if self.away or body is None:
            taken.sendall(head(503 if self.away else 404, content_length=0))
        else:
            ranged(body, "")(taken, request)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def origin(source: Source) -> Generator[Origin]:
    with serving(source.send) as server:
        yield server


@pytest.fixture
def buckets() -> Generator[BucketServer]:
    with bucket_server() as server:
        server.secrets["KEY"] = "a-secret"
        server.buckets["mesh"] = {}
        yield server


@pytest.fixture
async def mesh(tmp_path: Path, buckets: BucketServer) -> AsyncGenerator[Mesh]:
    settings = source_settings(
        s3_access_key="KEY",
        s3_secret_key="a-secret",
        allow=("127.0.0.1",),
        environ={"HF_HUB_CACHE": "/nowhere"},
    )
    made = Mesh(settings, tmp_path)
    made.bucket = ContentBucket(bucket_of(f"s3://mesh/files?endpoint={buckets.url}"), settings)
    async with made.stack:
        yield made


@pytest.fixture
def spec(origin: Origin) -> ModelSpec:
    url = f"http://127.0.0.1:{origin.port}/a.gguf"
    return ModelSpec(source=HttpsSource(url=url), engine="llama.cpp", files=LISTED)


async def fetched(node: Node, spec: ModelSpec) -> dict[str, bytes]:
    """The files as the engine of a node finds them."""
    async with asyncio.timeout(30):
        folder = await node.files.fetches.want(spec, ONE)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def storing(node: Node, *specs: ModelSpec) -> StoringLoop:
    """The loop of a node that was given these; what it has since before is looked at last."""
    assert node.files.mesh_store is not None
    return StoringLoop(node.files.mesh_store, lambda: specs, lambda: node.files.fetches.there, chance=lambda: 1.0)


async def stored(node: Node, *specs: ModelSpec) -> None:
    """Once all that is due of a node was put."""
    loop = storing(node, *specs)
    while await loop.turn():
        pass


def counted(result: str) -> float:
    return REGISTRY.get_sample_value("weft_files_stored_total", {"result": result}) or 0.0


async def test_the_first_node_puts_what_another_one_reads_when_node_and_source_are_gone(
    mesh: Mesh, source: Source, origin: Origin, buckets: BucketServer, spec: ModelSpec
) -> None:
    one, two = await mesh.node("one"), await mesh.node("two")
    before = counted("put")
    assert FILES == await fetched(one, spec)
    assert {} == buckets.buckets["mesh"]
    await stored(one, spec)
    assert KEYS == buckets.buckets["mesh"]
    assert 2 == counted("put") - before
    # when nobody else gives it
    source.away = True
    asked = len(origin.asked)
    assert FILES == await fetched(two, spec)
    # then the store did, and nothing is put a second time
    await stored(two, spec)
    assert asked == len(origin.asked)
    assert 2 == sum(times for said, times in buckets.asked.items() if said.startswith("PUT"))


async def test_a_node_is_asked_before_the_store(
    mesh: Mesh, source: Source, buckets: BucketServer, spec: ModelSpec
) -> None:
    one, two = await mesh.node("one"), await mesh.node("two")
    mesh.rows[two.identity.node] = [one]
    await fetched(one, spec)
    await stored(one, spec)
    source.away = True
    asked = buckets.asked.total()
    assert FILES == await fetched(two, spec)
    assert asked == buckets.asked.total()


@pytest.mark.parametrize("wrong", [bytes(300_000), b"short"], ids=["of the same size", "short"])
async def test_what_is_wrong_in_the_store_is_refused_had_from_the_source_and_put_right(
    mesh: Mesh, origin: Origin, buckets: BucketServer, spec: ModelSpec, wrong: bytes
) -> None:
    one, two = await mesh.node("one"), await mesh.node("two")
    await fetched(one, spec)
    await stored(one, spec)
    key = next(iter(KEYS))
    buckets.put("mesh", key, wrong)
    origin.asked.clear()
    # when another node reads it, then that file alone comes from the source
    assert FILES == await fetched(two, spec)
    assert ["/a.gguf"] == sorted({each.path for each in origin.asked})
    await stored(two, spec)
    assert KEYS == buckets.buckets["mesh"]


async def test_a_store_that_lies_is_named_where_nobody_else_gives_the_file(
    mesh: Mesh, source: Source, buckets: BucketServer, spec: ModelSpec
) -> None:
    source.away = True
    for key, body in KEYS.items():
        buckets.put("mesh", key, bytes(len(body)))
    node = await mesh.node("one")
    with pytest.raises(FetchFailed, match=r"the mesh's store s3://mesh/files checksum mismatch.*answers 503"):
        await fetched(node, spec)
    assert not list((mesh.folder / "one" / "files" / "blobs").rglob("??/*"))


async def test_a_store_that_is_away_costs_one_look_and_is_named_when_the_source_is_away_too(
    mesh: Mesh, source: Source, buckets: BucketServer, spec: ModelSpec
) -> None:
    buckets.broken = True
    one, two = await mesh.node("one"), await mesh.node("two")
    assert FILES == await fetched(one, spec)
    assert 1 == buckets.asked.total()
    source.away = True
    with pytest.raises(FetchFailed, match=r"a\.gguf answers 503; the mesh's store s3://mesh/files answers 503"):
        await fetched(two, spec)


@pytest.mark.parametrize("refuses", ["for want of its secret", "since no hub is to be asked"])
async def test_the_store_gives_what_the_source_refuses_to_this_node(
    mesh: Mesh, buckets: BucketServer, spec: ModelSpec, refuses: str
) -> None:
    locked: HttpsSource | HfSource = HttpsSource(url="https://example.org/a.gguf", secret="kept")
    if "hub" in refuses:
        mesh.settings = replace(mesh.settings, offline=True)
        locked = HfSource(repository="o/r", revision="0" * 40)
    refused = spec.model_copy(update={"source": locked})
    node = await mesh.node("one")
    with pytest.raises(FetchFailed, match="can't be"):
        await fetched(node, refused)
    for key, body in KEYS.items():
        buckets.put("mesh", key, body)
    assert FILES == await fetched(node, refused)


async def test_a_store_that_takes_nothing_fails_no_fetch_and_is_left_until_a_file_comes_anew(
    mesh: Mesh, source: Source, buckets: BucketServer, spec: ModelSpec
) -> None:
    buckets.readers.add("KEY")
    node = await mesh.node("one")
    before = counted("failed")
    loop = storing(node, spec)
    assert FILES == await fetched(node, spec)
    while await loop.turn():
        pass
    assert 2 == counted("failed") - before
    buckets.readers.clear()
    assert not await loop.turn()
    # when it is fetched anew
    await node.files.fetches.remove(next(iter(node.files.fetches.there)))
    assert FILES == await fetched(node, spec)
    while await loop.turn():
        pass
    assert KEYS == buckets.buckets["mesh"]


async def test_an_agent_that_starts_anew_puts_what_its_last_one_did_not(
    mesh: Mesh, buckets: BucketServer, spec: ModelSpec
) -> None:
    node = await mesh.node("one")
    await fetched(node, spec)
    store = node.files.mesh_store
    assert store is not None
    for file in LISTED:
        store.seen(file.checksum)
    # given one that remembers nothing of where they came from
    now = [0.0]
    loop = StoringLoop(
        store, lambda: [spec], lambda: node.files.fetches.there, clock=lambda: now[0], chance=lambda: 0.5
    )
    assert not await loop.turn()
    now[0] = 1e3
    while await loop.turn():
        pass
    assert KEYS == buckets.buckets["mesh"]


async def test_a_fault_in_one_look_ends_no_loop(mesh: Mesh, buckets: BucketServer, spec: ModelSpec) -> None:
    node = await mesh.node("one")
    await fetched(node, spec)
    assert node.files.mesh_store is not None
    looked: list[int] = []

    def expected() -> list[ModelSpec]:
        looked.append(1)
        if len(looked) == 1:
            raise TypeError("of a strange spec")
        return [spec]

    loop = StoringLoop(node.files.mesh_store, expected, lambda: node.files.fetches.there, chance=lambda: 1.0)
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(30):
        while KEYS != buckets.buckets["mesh"]:
            loop.wake.ring()
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.wait({running})


async def test_what_lies_on_workers_own_disks_is_not_put(mesh: Mesh, buckets: BucketServer) -> None:
    node = await mesh.node("one")
    own = ModelSpec(source=PathSource(path="/models/m.gguf"), engine="llama.cpp", files=LISTED)
    await stored(node, own)
    assert 0 == buckets.asked.total()


async def test_what_somebody_sent_is_put_and_comes_to_another_node_without_the_sender(
    mesh: Mesh, buckets: BucketServer
) -> None:
    body = FILES["b.gguf"]
    file = SourceFile(name="b.gguf", size=len(body), checksum=f"blake3:{blake3(body).hexdigest()}")
    spec = ModelSpec(source=UploadSource(name="b.gguf"), engine="llama.cpp", files=(file,))
    one, two = await mesh.node("one"), await mesh.node("two")
    sent = asyncio.create_task(fetched(one, spec))
    async with asyncio.timeout(10):
        while (
            not (arrivals := [one.files.arrivals.open(each, file.name) for each in under_way(one)]) or not arrivals[0]
        ):
            await asyncio.sleep(0.01)
    arrival = arrivals[0]
    assert arrival is not None
    await arrival.take(0, bytearray(body))
    await arrival.finish()
    assert {"b.gguf": body} == await sent
    await stored(one, spec)
    assert {f"files/{file.checksum.replace(':', '/')}": body} == buckets.buckets["mesh"]
    assert {"b.gguf": body} == await fetched(two, spec)


def under_way(node: Node) -> list[str]:
    return [each.files for each in node.files.fetches.said()]


async def test_what_tells_no_content_has_no_place_there(mesh: Mesh) -> None:
    node = await mesh.node("one")
    store = node.files.mesh_store
    assert store is not None
    for checksum in ("", 'etag:"1"'):
        file = wanted_file(SourceFile(name="m.gguf", size=5, checksum=checksum))
        store.came(file)
        assert (None, "") == await store.where(file)
    assert {} == store.fresh
