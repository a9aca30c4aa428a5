"""A private model's small files outlive who published them: from its node first, then from what the mesh kept."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from nats.aio.client import Client
from weft_contracts import permissions
from weft_contracts.card import Card
from weft_eventlog import EventLog, blobs
from weft_gateway.domain.card_files import CardSettings
from weft_gateway.outbound.fetched_card_files import FetchedCardFiles
from weft_gateway.projections.directory import Directory
from weft_runtime.connection import connect, read_credentials
from weft_testing.story import MeshUnderTest, until

from . import own_gguf

NAME = "private"
MADE = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}
WORKERS = ("worker-1", "worker-2")


@pytest.mark.slow
@pytest.mark.sabotage("only-from-the-living")
def test_a_private_models_tokenizer_is_had_from_its_node_and_when_that_is_gone_from_what_the_mesh_kept(
    tmp_path: Path,
) -> None:
    # given a GGUF file that no hub knows, beside which nothing lies, served by two workers
    (tmp_path / "models").mkdir()
    file = own_gguf.write(tmp_path / "models" / "private.gguf")
    with MeshUnderTest(tmp_path, workers=2, WEFT_START_GRACE="5") as mesh:
        spec = {
            "source": {"kind": "path", "path": str(file)},
            "engine": "llama.cpp",
            "strategy": "spread",
            "min_replicas": 2,
            "max_replicas": 2,
        }
        mesh.deploy(NAME, spec).raise_for_status()
        until("both workers serve it", lambda: len(nodes(mesh)) == 2, 120)
        # when a gateway wants its files while the mesh's own store gives none
        card, came = asyncio.run(read(mesh, tmp_path / "first", stored=False))
        # then they come from a node, made of the header, each in its slot
        assert MADE == came.keys()
        assert card.is_new_form
        assert card.tokenizer is not None
        assert "ĠParis" in json.loads(came["tokenizer.json"])["model"]["vocab"]
        assert b"messages" in came["chat_template.jinja"]

        # given that the mesh has kept them, and that both workers die and stay dead
        until("they are kept", lambda: MADE <= kept(mesh), 60)
        for worker in WORKERS:
            assert 0 == mesh.weft("hold", worker).returncode
        for pid in [mesh.pid(worker) for worker in WORKERS] + family(mesh):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until("no node is healthy", lambda: all(n["state"] != "healthy" for n in mesh.status()["nodes"]), 90)
        # when a gateway that begins anew wants them, with nothing on its disk
        _, again = asyncio.run(read(mesh, tmp_path / "second", stored=True))
        # then they are the same
        assert came == again


async def read(mesh: MeshUnderTest, folder: Path, *, stored: bool) -> tuple[Card, dict[str, bytes]]:
    """What a gateway reads of the model's card, with its own rights and a folder of its own."""
    client = await connection(mesh)
    directory = Directory()
    try:
        directory.fold([commit async for commit in EventLog(client, actor="story").read()])
        source = partial(blobs.read, client) if stored else nothing
        cards = FetchedCardFiles(directory, source, CardSettings(folder))
        card = cards.card(NAME)
        assert card is not None
        paths = {each.name: await cards.file(NAME, each) for each in card.files}
        await cards.close()
        return card, {name: await asyncio.to_thread(path.read_bytes) for name, path in paths.items()}
    finally:
        await client.close()


async def nothing(name: str, size: int | None, take: Callable[[bytes], object]) -> None:
    raise KeyError(name)


async def connection(mesh: MeshUnderTest) -> Client:
    token, seed = read_credentials(mesh.state / "credentials" / "gateway.creds")
    url = f"nats://127.0.0.1:{json.loads((mesh.state / 'ports.json').read_text())['nats']}"
    inbox = permissions.service("gateway").inbox
    return await asyncio.wait_for(connect(url, jwt=token, seed=seed, inbox=inbox, name="story"), 30)


def nodes(mesh: MeshUnderTest) -> set[str]:
    return {replica["node_name"] for replica in mesh.ready_replicas(NAME)}


def kept(mesh: MeshUnderTest) -> set[str]:
    """Names of what the metadata-cache keeps of the model."""
    (accepted,) = [each for each in mesh.facts("model", "spec_accepted") if each["fact"]["name"] == NAME]
    verified = mesh.facts("artifact", "verified")
    return {each["fact"]["file"]["name"] for each in verified if each["fact"]["model"] == accepted["key"]}


def family(mesh: MeshUnderTest) -> list[int]:
    """Processes of both workers: agents and hosts."""
    found: list[int] = []
    for process in mesh.processes():
        with suppress(OSError):
            about = Path(f"/proc/{process.pid}")
            words = (about / "environ").read_bytes() + (about / "cmdline").read_bytes()
            if any(worker.encode() in words for worker in WORKERS):
                found.append(process.pid)
    return found
