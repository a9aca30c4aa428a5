"""The service on a real log, a real object store and real file servers."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
from nats.aio.client import Client
from weft_contracts.commit import Recorded
from weft_contracts.facts.artifact import Refused, Verified
from weft_contracts.facts.fact import Fact
from weft_eventlog import EventLog, Projection, blobs
from weft_metadata_cache.domain.due_fetches import Limits, State
from weft_metadata_cache.inbound.collector import Collector
from weft_metadata_cache.outbound.fetch import Fetcher
from weft_metadata_cache.outbound.store import Store
from weft_runtime.health import Health
from weft_sources.settings import SourceSettings
from weft_testing.mesh_server import MeshServer
from weft_testing.stored_blob import stored_blob
from weft_testing.wanted_files import QUICK

from .files_server import Answer, FilesServer, files_server
from .offers import file, mesh

BODY = b'{"model": {}}' * 20_000
TOKENIZER = file(BODY)
CONFIG = file(b'{"layers": 2}', "config.json")


@pytest.fixture
async def root(mesh_server: MeshServer) -> Client:
    return await mesh_server.root()


@pytest.fixture
async def log(root: Client) -> EventLog:
    return EventLog(root, actor="test")


@pytest.fixture
async def files() -> AsyncIterator[FilesServer]:
    async with files_server() as server:
        for number in range(1, 4):
            server.answers[f"/metadata/m-1-{number}/tokenizer.json"] = Answer(BODY)
            server.answers[f"/metadata/m-1-{number}/config.json"] = Answer(b'{"layers": 2}')
        yield server


@asynccontextmanager
async def collecting(mesh_server: MeshServer, instances: int = 1) -> AsyncGenerator[None]:
    """So many collectors that all think that they lead: the guards make it right."""
    tasks: list[asyncio.Task[None]] = []
    for _ in range(instances):
        client = await mesh_server.service("metadata-cache")
        log, state = EventLog(client, actor="metadata-cache"), State()
        projection = Projection(log, name="test", fold=partial(_fold, state))
        collector = Collector(
            log,
            projection,
            state,
            Store(partial(blobs.read, client), partial(blobs.put, client)),
            Fetcher(SourceSettings(), timeout=20, bounds=QUICK),
            leads=lambda: True,
            limits=Limits(pause=0.1, tries=2),
            health=Health(),
        )
        tasks += [asyncio.create_task(projection.run()), asyncio.create_task(collector.run())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=30)


def _fold(state: State, commits: Sequence[Recorded]) -> None:
    for commit in commits:
        state.apply(commit)


async def outcomes(log: EventLog, count: int) -> list[Fact]:
    """The first `count` facts about artifacts."""
    async with asyncio.timeout(30):
        while True:
            found = [fact async for commit in log.read("weft.ev.artifact.>") for fact in commit.facts]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.05)


async def test_each_file_is_fetched_once_though_three_nodes_have_it(
    mesh_server: MeshServer, root: Client, log: EventLog, files: FilesServer
) -> None:
    for commit in mesh([files.port] * 3, TOKENIZER, CONFIG):
        await log.append(commit)

    async with collecting(mesh_server):
        facts = await outcomes(log, 2)
        await asyncio.sleep(0.3)

    assert {TOKENIZER, CONFIG} == {fact.file for fact in facts if isinstance(fact, Verified)}
    assert BODY == await stored_blob(root, TOKENIZER.blake3)
    assert 2 == len(files.asked)
    assert 2 == len(await outcomes(log, 2))
    assert [] == mesh_server.errors


async def test_two_instances_that_both_lead_verify_a_file_once(
    mesh_server: MeshServer, log: EventLog, files: FilesServer
) -> None:
    async with collecting(mesh_server, instances=2):
        for commit in mesh([files.port], TOKENIZER):
            await log.append(commit)
        await outcomes(log, 1)
        await asyncio.sleep(0.5)

    assert 1 == len(await outcomes(log, 1))


async def test_what_a_node_serves_wrongly_is_refused_and_taken_from_another(
    mesh_server: MeshServer, root: Client, log: EventLog, files: FilesServer
) -> None:
    files.answers["/metadata/m-1-1/tokenizer.json"] = Answer(BODY[:-1] + b"?")
    for commit in mesh([files.port] * 2, TOKENIZER):
        await log.append(commit)

    async with collecting(mesh_server):
        refused, verified = (await outcomes(log, 2))[:2]

    assert isinstance(refused, Refused)
    assert "n-1" == refused.node
    assert "checksum mismatch" in refused.reason
    assert isinstance(verified, Verified)
    assert BODY == await stored_blob(root, TOKENIZER.blake3)


async def test_what_no_node_serves_rightly_leaves_nothing_behind_and_comes_to_an_end(
    mesh_server: MeshServer, root: Client, log: EventLog, files: FilesServer
) -> None:
    files.answers["/metadata/m-1-1/tokenizer.json"] = Answer(BODY + b"more", length=False)
    for commit in mesh([files.port], TOKENIZER):
        await log.append(commit)

    async with collecting(mesh_server):
        facts = await outcomes(log, 2)
        await asyncio.sleep(1.5)

    assert all(isinstance(fact, Refused) and "exceeds cap" in fact.reason for fact in facts)
    assert 2 == len(await outcomes(log, 2))
    assert await stored_blob(root, TOKENIZER.blake3) is None


@pytest.mark.parametrize(("stored", "fetched"), [(BODY, 0), (b"spoilt", 1)])
async def test_a_sound_blob_is_not_fetched_again_and_a_spoilt_one_is(
    mesh_server: MeshServer, root: Client, log: EventLog, files: FilesServer, stored: bytes, fetched: int
) -> None:
    await blobs.put(root, TOKENIZER.blake3, stored)
    for commit in mesh([files.port], TOKENIZER):
        await log.append(commit)

    async with collecting(mesh_server):
        facts = await outcomes(log, 1)

    assert isinstance(facts[0], Verified)
    assert fetched == len(files.asked)
    assert BODY == await stored_blob(root, TOKENIZER.blake3)


async def test_a_fetch_that_is_cancelled_midway_leaves_nothing_behind(
    mesh_server: MeshServer, root: Client, log: EventLog, files: FilesServer
) -> None:
    files.answers["/metadata/m-1-1/tokenizer.json"] = Answer(BODY, stall=asyncio.Event())
    for commit in mesh([files.port], TOKENIZER):
        await log.append(commit)

    async with collecting(mesh_server):
        await asyncio.wait_for(files.asked_once.wait(), 30)

    await asyncio.wait_for(files.hung_up.wait(), 30)
    assert await stored_blob(root, TOKENIZER.blake3) is None
    assert [] == [fact async for commit in log.read("weft.ev.artifact.>") for fact in commit.facts]


async def test_a_folder_that_can_not_be_used_is_named_at_the_start(mesh_server: MeshServer) -> None:
    settings = {
        "WEFT_NATS_URL": mesh_server.url,
        "WEFT_NATS_CREDENTIALS": str(mesh_server.credentials_file("metadata-cache")),
        "WEFT_METADATA_FOLDER": "/dev/null/metadata",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "weft_metadata_cache"), env=os.environ | settings, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), 60)

    assert (2, True) == (process.returncode, b"WEFT_METADATA_FOLDER can't be used" in said)


async def test_the_process_collects_and_stops_in_order(
    mesh_server: MeshServer, root: Client, log: EventLog, files: FilesServer
) -> None:
    settings = {
        "WEFT_NATS_URL": mesh_server.url,
        "WEFT_NATS_CREDENTIALS": str(mesh_server.credentials_file("metadata-cache")),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "weft_metadata_cache", env=os.environ | settings
    )
    try:
        for commit in mesh([files.port], TOKENIZER):
            await log.append(commit)
        facts = await outcomes(log, 1)
        process.terminate()
        status = await asyncio.wait_for(process.wait(), 30)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert isinstance(facts[0], Verified)
    assert 0 == status
    assert BODY == await stored_blob(root, TOKENIZER.blake3)
