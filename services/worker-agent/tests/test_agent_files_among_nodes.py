"""Nodes give one another the files that they need: one copy leaves the source, and nobody else gets any."""

import asyncio
import hashlib
import os
import random
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from weft_contracts.facts.source import HttpsSource, SourceFile
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ReplicaId
from weft_identity import authority
from weft_sources.environment import source_settings
from weft_testing.origin import Origin, Request, head, ranged, serving
from weft_worker_agent.outbound.files.model_fetches import FetchFailed

from .mesh_of_nodes import Mesh, Node

ONE = ReplicaId("m-x-1")
FILES = {"a.gguf": random.Random(1).randbytes(600_000), "b.gguf": random.Random(2).randbytes(100_000)}


class Source:
    """A web server with a model of two files."""

    def __init__(self) -> None:
        self.stalls_at = 1 << 30
        """Ranges of the first file that begin behind it are given once the gate opens."""
        self.gate = threading.Event()
        self.away = False

    def send(self, taken: socket.socket, request: Request) -> None:
        body = FILES.get(request.path.removeprefix("/"))
        if self.away or body is None:
            taken.sendall(head(503 if self.away else 404, content_length=0))
            return
        if request.span is not None and request.span[0] > self.stalls_at:
            self.gate.wait(30)
        ranged(body, "")(taken, request)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def origin(source: Source) -> Generator[Origin]:
    with serving(source.send) as server:
        yield server
        source.gate.set()


@pytest.fixture(params=["TLS", "plain"])
def speaks(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def mesh(tmp_path: Path, speaks: str) -> AsyncGenerator[Mesh]:
    (tmp_path / "trust").mkdir()
    own = authority.load_or_make(tmp_path / "trust") if speaks == "TLS" else None
    made = Mesh(source_settings(allow=("127.0.0.1",), environ={"HF_HUB_CACHE": "/nowhere"}), tmp_path, own)
    async with made.stack:
        yield made


@pytest.fixture
def spec(origin: Origin) -> ModelSpec:
    files = tuple(
        SourceFile(name=name, size=len(body), checksum=f"sha256:{hashlib.sha256(body).hexdigest()}")
        for name, body in FILES.items()
    )
    url = f"http://127.0.0.1:{origin.port}/a.gguf"
    return ModelSpec(source=HttpsSource(url=url), engine="llama.cpp", files=files)


async def fetched(node: Node, spec: ModelSpec) -> dict[str, bytes]:
    """The files as the engine of a node finds them."""
    async with asyncio.timeout(30):
        folder = await node.files.fetches.want(spec, ONE)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def bytes_of(origin: Origin) -> int:
    """What a source was asked for."""
    whole = {f"/{name}": len(body) for name, body in FILES.items()}
    return sum(each.span[1] - each.span[0] if each.span else whole[each.path] for each in origin.asked)


async def test_one_copy_leaves_the_source_and_goes_on_from_node_to_node(
    mesh: Mesh, source: Source, origin: Origin, spec: ModelSpec
) -> None:
    one, two, three = [await mesh.node(name) for name in ("one", "two", "three")]
    mesh.rows[two.identity.node], mesh.rows[three.identity.node] = [one], [two, one]
    assert FILES == await fetched(one, spec)
    # when others need them and the source is away
    source.away = True
    assert FILES == await fetched(two, spec)
    assert FILES == await fetched(three, spec)
    # then they left it once
    assert sum(len(body) for body in FILES.values()) == bytes_of(origin)


@pytest.mark.slow
async def test_what_still_comes_is_handed_on_in_a_row(
    mesh: Mesh, source: Source, origin: Origin, spec: ModelSpec
) -> None:
    # given a source that gives the larger part of the first file, and then nothing
    source.stalls_at = 6 << 16
    one, two, three = [await mesh.node(name) for name in ("one", "two", "three")]
    mesh.rows[two.identity.node], mesh.rows[three.identity.node] = [one], [two, one]
    for node in (one, two, three):
        node.runs(spec)
    tasks = [asyncio.create_task(fetched(node, spec)) for node in (one, two, three)]
    try:
        # when nobody has it whole, then the last has by way of the second what the first has
        async with asyncio.timeout(20):
            while not (said := three.files.fetches.said()) or said[0].fetched < 6 << 16:
                await asyncio.sleep(0.02)
        assert said[0].source.endswith("/a.gguf from two")
        assert not any(task.done() for task in tasks)
    finally:
        source.gate.set()
    # and when it goes on, all have all of it, and it left the source once
    assert [FILES, FILES, FILES] == await asyncio.gather(*tasks)
    assert sum(len(body) for body in FILES.values()) == bytes_of(origin)


@pytest.mark.slow
async def test_who_needs_no_files_gets_none_from_a_node(mesh: Mesh, source: Source, spec: ModelSpec) -> None:
    one, two = await mesh.node("one"), await mesh.node("two")
    mesh.rows[two.identity.node] = [one]
    mesh.source_after_s = 1.0
    await fetched(one, spec)
    # when by the log a node needs them no more, whatever it was told
    mesh.needs.remove(two.identity.node)
    source.away = True
    # then neither the other node nor the source, which it asks after a while, gives it any
    with pytest.raises(FetchFailed, match="one answers 403"):
        await fetched(two, spec)
    assert not list((mesh.folder / "two" / "files" / "blobs").rglob("*.*"))


@pytest.mark.slow
@pytest.mark.parametrize("speaks", ["TLS"], indirect=True)
async def test_a_server_that_is_another_node_or_of_another_mesh_is_told_nothing(
    mesh: Mesh, source: Source, spec: ModelSpec, tmp_path: Path
) -> None:
    one, two, three = [await mesh.node(name) for name in ("one", "two", "three")]
    await fetched(one, spec)
    asked = len(mesh.asked)
    # given nodes of which the log says that they are where another one listens
    (tmp_path / "foreign").mkdir()
    foreign = authority.load_or_make(tmp_path / "foreign")
    assert three.certificate is not None
    three.port = one.port
    mesh.rows[two.identity.node] = [three]
    # when files are wanted of them, the source is asked for want of anybody
    mesh.source_after_s = 1.0
    assert FILES == await fetched(two, spec)
    # and one whose certificate is of another authority is as good as nobody
    four = await mesh.node("four")
    foreign.lay_out(four.certificate.folder if four.certificate else tmp_path, f"node/{four.identity.node}")
    mesh.rows[four.identity.node] = [one]
    assert FILES == await fetched(four, spec)
    # then none of their readers' words came to a node
    assert "/api/node/files/reader" not in mesh.asked[asked:]


@pytest.mark.slow
async def test_a_node_that_lies_is_passed_over_and_not_asked_again(
    mesh: Mesh, source: Source, origin: Origin, spec: ModelSpec
) -> None:
    one, liar, two = [await mesh.node(name) for name in ("one", "liar", "two")]
    await fetched(one, spec)
    # given a node whose files are of the right size and of another content
    await fetched(liar, spec)
    for path in (mesh.folder / "liar" / "files" / "blobs").glob("*/*"):
        spoil(path)
    source.away = True
    mesh.rows[two.identity.node] = [liar, one]
    # when another one asks it first
    assert FILES == await fetched(two, spec)
    assert 2 == mesh.asked.count("/api/node/files/reader")


@pytest.mark.slow
@pytest.mark.parametrize("speaks", ["plain"], indirect=True)
async def test_who_hands_on_anothers_lie_is_asked_again_and_a_liar_without_others_means_the_source(
    mesh: Mesh, source: Source, origin: Origin, spec: ModelSpec
) -> None:
    # given a row in which the first has wrong files and hands them on
    liar, two, three = [await mesh.node(name) for name in ("liar", "two", "three")]
    await fetched(liar, spec)
    for path in (mesh.folder / "liar" / "files" / "blobs").glob("*/*"):
        spoil(path)
    asked = bytes_of(origin)
    mesh.rows[two.identity.node], mesh.rows[three.identity.node] = [liar], [two]
    for node in (two, three):
        node.runs(spec)
    # when others ask it, one by way of the other
    assert [FILES, FILES] == await asyncio.gather(fetched(two, spec), fetched(three, spec))
    # then one of them asked the source, once
    assert sum(len(body) for body in FILES.values()) == bytes_of(origin) - asked


def spoil(path: Path) -> None:
    """Other bytes, of which nothing tells that they are others."""
    about = path.stat()
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(b"?")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


@pytest.mark.slow
async def test_a_gateway_that_is_away_means_the_source(mesh: Mesh, spec: ModelSpec) -> None:
    one = await mesh.node("one")
    mesh.away = True
    assert FILES == await fetched(one, spec)


@pytest.mark.slow
async def test_peers_that_bring_nothing_are_waited_for_within_a_bound(
    mesh: Mesh, source: Source, spec: ModelSpec
) -> None:
    # given a node that expects the files and gets none
    one, two = await mesh.node("one"), await mesh.node("two")
    one.runs(spec)
    mesh.rows[two.identity.node] = [one]
    mesh.source_after_s, mesh.again_after_s = 1.5, 1.0
    # when another one asks it
    assert FILES == await fetched(two, spec)
    # then it looked again who is near before it went to the source
    assert 2 <= mesh.asked.count("/api/node/files/near")


@pytest.mark.slow
async def test_a_source_that_is_away_fails_the_first_in_the_row_with_the_reason(
    mesh: Mesh, source: Source, spec: ModelSpec
) -> None:
    one = await mesh.node("one")
    source.away = True
    with pytest.raises(FetchFailed, match=r"could not be fetched: a.gguf was not fetched: .*answers 503"):
        await fetched(one, spec)
