"""An observer: it hears what becomes of nodes, workers' words too, does nothing else, and is gone when removed."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from nats.aio.client import Client
from weft_testing.bare_node import BareNode
from weft_testing.flushed import flushed
from weft_testing.story import MeshUnderTest, until

EXAMPLE = Path(__file__).parents[2] / "docs/observer/node_transitions.py"
MUST_NOT_SEND = (
    "weft.ev.node.n-1.approved",
    "weft.ev.request.q-1.removal_requested",
    "weft.lease.node.n-1",
    "weft.sig.node.n-1.load",
    "weft.usage.k-1",
    "weft.timer.registry.x",
    "weft.snapshot.registry.registry.a.head",
    "$KV.credentials.n-1",
    "$KV.people.k-1",
    "$O.blobs.C.x",
    "_INBOX_registry.x",
    "$JS.API.STREAM.INFO.EVENTS",
    "$JS.API.STREAM.MSG.GET.KV_credentials",
    "$JS.API.DIRECT.GET.KV_people.$KV.people.k-1",
    "$JS.API.DIRECT.GET.LEASES",
    "$JS.API.CONSUMER.CREATE.EVENTS",
    "$JS.API.CONSUMER.CREATE.EVENTS.observer-press",
    "$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.observer-press",
    "$JS.API.CONSUMER.DELETE.EVENTS.observer-press",
    "$JS.API.CONSUMER.INFO.EVENTS.observer-press",
    "$JS.API.CONSUMER.MSG.NEXT.EVENTS.node-n-1",
    "$JS.API.CONSUMER.MSG.NEXT.EVENTS.observer-other",
    "$JS.API.CONSUMER.RESET.EVENTS.observer-other",
    "$JS.ACK.EVENTS.observer-other.1.1.1.1.1",
    "$SYS.REQ.CLAIMS.UPDATE",
)
MUST_NOT_HEAR = (
    ">",
    "weft.>",
    "weft.ev.>",
    "weft.sig.>",
    "weft.lease.>",
    "weft.usage.>",
    "weft.timer.>",
    "weft.snapshot.>",
    "$KV.>",
    "$O.>",
    "$JS.>",
    "$SYS.>",
    "_INBOX.>",
    "_INBOX_registry.>",
    "_INBOX_other.>",
)


@pytest.mark.slow
@pytest.mark.sabotage("kept-observers")
def test_an_observer_hears_of_nodes_does_nothing_else_and_is_shut_out_when_removed(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path, WEFT_START_GRACE="1")
    mesh.up("--no-model")
    try:
        file = tmp_path / "press.creds"
        made = mesh.weft("observers", "add", "press", "--out", str(file))
        assert 0 == made.returncode, made.stderr
        assert "example: WEFT_NATS_URL=" in made.stdout
        assert ("press", 0o600) == (observers(mesh)[0]["name"], file.stat().st_mode & 0o777)
        assert 1 == mesh.weft("observers", "add", "press", "--out", str(tmp_path / "x")).returncode
        url = f"nats://127.0.0.1:{mesh.part('nats')['port']}"
        asyncio.run(does_nothing_else(url, file))
        asyncio.run(a_node_lives(mesh))  # before anybody listens
        with listening(url, file) as told:
            until("it heard the end", lambda: "guest removed" in told.read_text(), 60)
            heard = [line.split() for line in told.read_text().splitlines() if line.startswith("guest")]
            assert ["joined", "approved", "healthy", "cordoned"] == [words[1] for words in heard[:4]]
            assert ["guest", "cordoned", "dust"] == heard[3]
            assert "worker-1" not in told.read_text()  # what was before it was added is not for it
            # when it is removed, it is cut off and hears no more
            removed = mesh.weft("observers", "remove", "press")
            assert 0 == removed.returncode, removed.stderr
            assert [] == observers(mesh)
            asyncio.run(is_shut_out(url, file))
            mesh.kill("nats")
            until("NATS is back", lambda: mesh.status()["log"]["connected"], 60)
            asyncio.run(is_shut_out(url, file))
    finally:
        mesh.close()


@pytest.mark.slow
@pytest.mark.sabotage("kept-observers")
def test_where_the_mesh_speaks_tls_an_observer_knows_it_by_its_authority(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path, WEFT_TLS="always")
    mesh.up("--no-model")
    try:
        file = tmp_path / "press.creds"
        made = mesh.weft("observers", "add", "press", "--out", str(file))
        assert 0 == made.returncode, made.stderr
        url = f"tls://127.0.0.1:{mesh.part('nats')['port']}"
        with listening(url, file, file.with_suffix(".pem")) as told:
            until("it listens", lambda: "listening" in told.read_text(), 60)
            assert 0 == mesh.weft("nodes", "cordon", "worker-1", "--reason", "dust").returncode
            until("it heard", lambda: "cordoned dust" in told.read_text())
            removed = mesh.weft("observers", "remove", "press")
            assert 0 == removed.returncode, removed.stderr
            assert 0 == mesh.weft("nodes", "uncordon", "worker-1").returncode
            time.sleep(5)  # it would come back within these
            assert "uncordoned" not in told.read_text()
    finally:
        mesh.close()


async def a_node_lives(mesh: MeshUnderTest) -> None:
    async with httpx.AsyncClient(timeout=30.0) as http:
        made = await http.post(f"{mesh.url}/api/tokens", json={"name": "any", "auto_approve": False})
        node = BareNode(mesh.url, "guest", http)
        assert 202 == (await node.register(made.json()["secret"])).status_code
        assert 200 == (await http.post(f"{mesh.url}/api/nodes/guest/approve")).status_code
        client = await node.connect(await node.credential())
        async with asyncio.timeout(30):
            while (await http.get(f"{mesh.url}/api/nodes/guest")).json()["state"] != "healthy":
                await node.lease(client)
                await asyncio.sleep(0.5)
        assert 200 == (await http.post(f"{mesh.url}/api/nodes/guest/cordon", json={"reason": "dust"})).status_code
        await client.close()
        gone = await http.delete(f"{mesh.url}/api/nodes/guest", params={"force": "true"})
        assert 200 == gone.status_code, gone.text


async def does_nothing_else(url: str, file: Path) -> None:
    errors: list[str] = []
    client = await connected(url, file, errors)
    for subject in MUST_NOT_SEND:
        await client.publish(subject, b"[]", reply="_INBOX_press.x")
    for subject in MUST_NOT_HEAR:
        await client.subscribe(subject)
    await flushed(client)
    async with asyncio.timeout(30):
        while len(denied := {e for e in errors if "permissions violation" in e.lower()}) < len(MUST_NOT_SEND) + len(
            MUST_NOT_HEAR
        ):
            await asyncio.sleep(0.05)
    assert len(MUST_NOT_SEND) + len(MUST_NOT_HEAR) == len(denied)
    await client.close()


async def is_shut_out(url: str, file: Path) -> None:
    client = Client()
    try:
        with pytest.raises(Exception, match=r"(?i)authorization|revoked|no servers|reset by peer"):
            await client.connect(url, user_credentials=str(file), allow_reconnect=False, max_reconnect_attempts=1)
    finally:
        await client.close()


async def connected(url: str, file: Path, errors: list[str]) -> Client:
    async def note(error: Exception) -> None:
        errors.append(str(error))

    client = Client()
    await client.connect(url, user_credentials=str(file), inbox_prefix=b"_INBOX_press", error_cb=note)
    return client


@contextmanager
def listening(url: str, file: Path, authority: Path | None = None) -> Generator[Path]:
    """The example of the docs, as `weft observers add` says that it is started; what it prints."""
    told = file.with_suffix(".out")
    settings = {"WEFT_NATS_URL": url, "WEFT_NATS_CREDENTIALS": str(file), "WEFT_LOG_FORMAT": "json"}
    if authority is not None:
        settings["WEFT_NATS_AUTHORITY"] = str(authority)
    with told.open("wb") as out:
        process = subprocess.Popen([sys.executable, str(EXAMPLE)], stdout=out, stderr=out, env=os.environ | settings)
    try:
        yield told
    finally:
        process.kill()
        process.wait(10)


def observers(mesh: MeshUnderTest) -> list[dict[str, Any]]:
    listed = mesh.weft("observers", "list", "--json")
    assert 0 == listed.returncode, listed.stderr
    return json.loads(listed.stdout)
