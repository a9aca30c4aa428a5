"""The topology on real servers: applied again, on servers with little room, with limits that follow a disk."""

import asyncio
import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js.errors import APIError
from weft_contracts import disk, subjects
from weft_contracts import topology as t
from weft_contracts.commit import Cause, Commit
from weft_contracts.facts import node
from weft_contracts.ids import CorrelationId, NodeId
from weft_eventlog import EventLog, LogFull, LogUnavailable, apply_topology, follow_disk, follow_size, topology
from weft_servers import nats_server, port
from weft_servers.nats_conf import NatsConf
from weft_testing.mesh_server import MeshServer

RESERVED = sum(each.max_bytes for each in (*t.STREAMS, *t.KEY_VALUES) if each.storage == "file")
CAUSE = Cause(CorrelationId("c"))


@dataclasses.dataclass(frozen=True)
class Limited(NatsConf):
    """An operator's server, with a limit of its own."""

    max_file_store: int = 0

    def render(self) -> str:
        conf = json.loads(super().render())
        conf["jetstream"]["max_file_store"] = self.max_file_store
        return json.dumps(conf)


async def _applied(folder: Path, max_file_store: int, times: int = 1) -> dict[str, int]:
    """Apply the topology to a server on a folder, so many times; the streams' limits then."""
    client_port, monitor_port = port.choose(2)
    client = Client()
    with nats_server.launch(Limited(folder, client_port, monitor_port, max_file_store=max_file_store)) as server:
        server.wait_ready()
        try:
            await client.connect(server.url, allow_reconnect=False, connect_timeout=30)
            for _ in range(times):
                await apply_topology(client)
            streams = await client.jetstream(timeout=30).streams_info()
            return {str(each.config.name): each.config.max_bytes or 0 for each in streams}
        finally:
            await client.close()


async def test_what_is_applied_already_needs_no_further_room(tmp_path: Path) -> None:
    first = await _applied(tmp_path / "nats", RESERVED + (1 << 20))
    again = await _applied(tmp_path / "nats", RESERVED + (1 << 20), times=2)
    assert first == again
    assert t.SNAPSHOTS.max_bytes == again["SNAPSHOTS"]


async def test_what_a_server_did_not_answer_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "_ANSWER_S", 0.5)
    monkeypatch.setattr(topology, "_TRIES", 40)  # a slow machine needs some of them for itself
    with nats_server.start(tmp_path / "nats") as server:
        client = await nats.connect(server.url, connect_timeout=30)
        # given a server that answers nothing
        os.kill(server.pid, signal.SIGSTOP)
        applying = asyncio.create_task(apply_topology(client))
        await asyncio.sleep(0.75)
        # when it goes on after the first question was given up
        os.kill(server.pid, signal.SIGCONT)
        await applying
        # then all is there
        names = {stream.config.name for stream in await client.jetstream(timeout=30).streams_info()}
        assert {stream.name for stream in t.STREAMS} <= names
        await client.close()


async def test_a_server_that_answers_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "_ANSWER_S", 0.1)
    with nats_server.start(tmp_path / "nats") as server:
        client = await nats.connect(server.url, connect_timeout=30)
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(LogUnavailable, match="TimeoutError"):
                await apply_topology(client)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await client.close()


async def test_servers_that_have_not_heard_of_each_other_yet_are_waited_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_all, refused = topology._apply_all, 2

    async def placed_nowhere_at_first(*given: Any) -> None:
        nonlocal refused
        if refused:
            refused -= 1
            raise APIError(code=400, err_code=10005, description="no suitable peers for placement, peer offline")
        await apply_all(*given)

    monkeypatch.setattr(topology, "_apply_all", placed_nowhere_at_first)
    with nats_server.start(tmp_path / "nats") as server:
        client = await nats.connect(server.url, connect_timeout=30)
        # given a server that places nothing yet, it is asked again
        await apply_topology(client)
        assert {stream.name for stream in t.STREAMS} <= {
            info.config.name for info in await client.jetstream(timeout=30).streams_info()
        }
        # and one that never does is given up
        monkeypatch.setattr(topology, "_PEERS_S", 0.0)
        refused = 1
        with pytest.raises(LogUnavailable, match="no suitable peers"):
            await apply_topology(client)
        await client.close()


async def test_an_operators_server_without_room_for_what_is_declared_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match=r"(?s)insufficient storage.*max_file_store"):
        await _applied(tmp_path / "nats", RESERVED // 2)


async def test_limits_follow_the_disk_and_what_is_accepted_stays(mesh_server: MeshServer) -> None:
    # given a log with something in it
    client = await mesh_server.service("registry")
    log, js = EventLog(client, actor="registry"), client.jetstream(timeout=30)
    commit = Commit(subjects.node(NodeId("n-a")), (node.Healthy(),), None, CAUSE)
    await log.append(commit, commit)
    # when its disk gets full
    await follow_disk(client, disk.KEPT_FREE - 1)
    # then nothing more is taken, by name and at once, and nothing is lost
    with pytest.raises(LogFull):
        await log.append(commit)
    with pytest.raises(LogFull):
        await log.append(commit, commit)
    assert 2 == await log.head()
    assert 2 == (await js.stream_info("EVENTS")).state.messages
    # and what the topology says again leaves that as it is
    await apply_topology(client)
    with pytest.raises(LogFull):
        await log.append(commit)
    # and when it has room again, commits are taken
    await follow_disk(client, disk.KEPT_FREE + (32 << 20))
    assert (3,) == await log.append(commit)
    held = (await js.stream_info("EVENTS")).config.max_bytes or 0
    assert (32 << 20) < held < (33 << 20)
    assert (8 << 20) == (await js.stream_info("SNAPSHOTS")).config.max_bytes
    # and a large disk gives what is declared
    await follow_disk(client, 1 << 40)
    assert t.SNAPSHOTS.max_bytes == (await js.stream_info("SNAPSHOTS")).config.max_bytes
    assert t.PEOPLE.max_bytes == (await js.stream_info("KV_people")).config.max_bytes


async def test_limits_fit_a_size_that_is_said_and_one_below_what_is_held_refuses_at_once(
    mesh_server: MeshServer,
) -> None:
    # given a log with something in it
    client = await mesh_server.service("registry")
    log, js = EventLog(client, actor="registry"), client.jetstream(timeout=30)
    commit = Commit(subjects.node(NodeId("n-a")), (node.Healthy(),), None, CAUSE)
    await log.append(commit)
    # when its servers' room is said
    await follow_size(client, 128 << 20)
    # then each stream that refuses when it is full has its part, and others have no limit
    limits = {name: (await js.stream_info(name)).config.max_bytes or 0 for name in ("EVENTS", "SNAPSHOTS", "USAGE")}
    assert ((72 << 20), (8 << 20), -1) == tuple(limits.values())
    assert (2,) == await log.append(commit)
    # and when it becomes less than what is there, nothing is lost and nothing is taken
    await follow_size(client, 0)
    with pytest.raises(LogFull):
        await log.append(commit)
    assert 2 == (await js.stream_info("EVENTS")).state.messages
