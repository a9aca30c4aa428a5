"""The node's sign of life: it goes on while the agent is busy, and not when the agent hangs."""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from weft_contracts import permissions, subjects
from weft_identity.mesh_exports import worker_grants
from weft_testing.flushed import flushed
from weft_testing.mesh_server import MeshServer
from weft_worker_agent.outbound.mesh import lease as module
from weft_worker_agent.outbound.mesh.credential import Credential
from weft_worker_agent.outbound.mesh.identity import NodeIdentity, load_or_make
from weft_worker_agent.outbound.mesh.lease import LeaseThread


def credential(mesh: MeshServer, identity: NodeIdentity) -> Credential:
    grants = worker_grants(permissions.worker(identity.node))
    token = mesh.trust.worker_token(identity.public_key, identity.node, grants)
    return Credential(token, mesh.url, time.time() + 3600, time.time())


async def test_the_lease_is_renewed_while_the_agent_s_loop_is_busy(
    mesh_server: MeshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.5)
    identity = load_or_make(tmp_path)
    root = await mesh_server.root()
    heard: Any = await root.subscribe(subjects.node_lease(identity.node))  # type: ignore[reportUnknownMemberType]
    await flushed(root)
    thread = LeaseThread(identity, credential(mesh_server, identity), "worker-x")
    thread.start()
    assert {"holder": "worker-x"} == json.loads((await heard.next_msg(timeout=30)).data)

    until = time.monotonic() + 3.0
    while time.monotonic() < until:
        sum(range(10_000))  # this loop is the agent's: nothing else of it runs

    await flushed(root)
    assert heard.pending_msgs >= 2
    thread.stop()
    await asyncio.to_thread(thread.join, 10)
    assert not thread.is_alive()


async def test_an_agent_that_hangs_for_good_ends_itself(
    mesh_server: MeshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PULSE_S", 2.0)
    monkeypatch.setattr(module, "EVERY_S", 0.5)
    identity = load_or_make(tmp_path)
    hung = threading.Event()
    thread = LeaseThread(identity, credential(mesh_server, identity), "worker-x", hang=hung.set)
    thread.start()
    for _ in range(30):  # for longer than it may hang
        thread.beat()
        await asyncio.sleep(0.1)
    assert not hung.is_set()

    assert await asyncio.to_thread(hung.wait, 30)
    thread.stop()
    await asyncio.to_thread(thread.join, 10)
