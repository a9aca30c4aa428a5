"""A real NATS server: ready, durable, supervised, locked."""

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import StreamConfig
from weft_servers import nats_server, port, supervised
from weft_servers.nats_conf import NatsConf
from weft_servers.nats_server import NatsServer, NoBinary, NotDurable
from weft_servers.state_lock import Locked
from weft_servers.supervised import CannotStart

Until = Callable[[Callable[[], bool]], None]
Runs = Callable[[int], bool]
Parent = Callable[[str, Path], tuple[subprocess.Popen[str], list[int]]]


@contextlib.asynccontextmanager
async def jetstream(server: NatsServer) -> AsyncGenerator[Any, None]:
    client: Any = Client()  # its types are partial
    await client.connect(server.url, allow_reconnect=False, connect_timeout=30)
    try:
        yield client.jetstream(timeout=30)
    finally:
        await client.close()


async def test_what_is_acknowledged_is_there_after_kill_9_and_after_a_stop(tmp_path: Path):
    with nats_server.start(tmp_path / "nats") as first:
        async with jetstream(first) as js:
            await js.add_stream(StreamConfig(name="EVENTS", subjects=["ev.>"]))
            for n in range(20):
                await js.publish(f"ev.{n}", b"x")
        os.kill(first.pid, signal.SIGKILL)

        conf = first.conf
        with nats_server.start(tmp_path / "nats", client_port=conf.port, monitor_port=conf.monitor_port) as second:
            assert first.url == second.url
            async with jetstream(second) as js:
                assert (await js.stream_info("EVENTS")).state.messages == 20
                await js.publish("ev.last", b"x")
            assert second.stop() == 0
        assert first.stop() == 128 + signal.SIGKILL

    with nats_server.start(tmp_path / "nats") as third:
        async with jetstream(third) as js:
            assert (await js.stream_info("EVENTS")).state.messages == 21


def test_the_server_ends_when_its_launcher_is_killed_and_the_next_start_waits_for_that(
    tmp_path: Path, parent: Parent, runs: Runs, until: Until
):
    lines = (
        "from weft_servers import nats_server\n"
        "s = nats_server.start(folder / 'nats')\nprint(s.pid, s.supervisor_pid, s.conf.port)"
    )
    owner, [pid, supervisor_pid, number] = parent(lines, tmp_path)

    owner.kill()

    with nats_server.start(tmp_path / "nats", client_port=number):
        assert not runs(pid)
        until(lambda: not runs(supervisor_pid))


def test_a_second_server_on_the_same_folder_is_refused_and_told_who_runs(tmp_path: Path):
    with nats_server.start(tmp_path / "nats") as first:
        with pytest.raises(Locked) as refused:
            nats_server.start(tmp_path / "nats", lock_wait_s=0)

        assert first.poll() is None
        assert str(first.pid) in str(refused.value)
        assert first.url in str(refused.value)


def test_a_pinned_port_that_is_taken_is_named(tmp_path: Path):
    with nats_server.start(tmp_path / "one") as first, pytest.raises(port.PortInUse) as refused:
        nats_server.start(tmp_path / "two", client_port=first.conf.port)

    assert first.conf.port == refused.value.port
    nats_server.start(tmp_path / "two").stop()


def test_the_folder_is_its_owners_alone(tmp_path: Path):
    with nats_server.start(tmp_path / "nats"):
        assert stat.S_IMODE((tmp_path / "nats").stat().st_mode) == 0o700


def test_a_path_with_quotes_and_letters_of_other_alphabets_is_no_obstacle(tmp_path: Path):
    with nats_server.start(tmp_path / 'state "ß" $HOME') as server:
        assert server.conf.store.is_dir()


def test_a_server_that_cannot_start_says_why(tmp_path: Path):
    (tmp_path / "nats").mkdir(mode=0o700)
    (tmp_path / "nats" / "jetstream").write_text("a file where the store should be")

    with pytest.raises((CannotStart, FileExistsError), match="jetstream"):
        nats_server.start(tmp_path / "nats")


def test_a_program_that_is_no_server_is_reported_with_its_words(tmp_path: Path):
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\necho no such luck\nexit 3\n")
    program.chmod(0o700)

    with pytest.raises(CannotStart, match=r"(?s)status 3.*no such luck"):
        nats_server.start(tmp_path / "nats", binary=program)


def test_a_server_that_acknowledges_before_it_flushes_is_refused(tmp_path: Path):
    client_port, monitor_port = port.choose(2)
    file = tmp_path / "n.conf"
    file.write_text(
        f'listen: "127.0.0.1:{client_port}", http: "127.0.0.1:{monitor_port}"\n'
        f'jetstream {{ store_dir: "{tmp_path}/js" }}\n'
    )
    process = supervised.launch([str(nats_server.find_binary()), "-c", str(file)], log=tmp_path / "log")
    server = NatsServer(NatsConf(tmp_path, client_port, monitor_port), process)

    with server, pytest.raises(NotDurable, match="sync_interval"):
        server.wait_ready()


def test_without_jetstream_nothing_is_durable():
    with pytest.raises(NotDurable):
        nats_server.check_durable({"server_name": "n", "jetstream": {}})


def test_a_missing_program_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch):
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr("importlib.metadata.files", nothing)
    monkeypatch.setattr("shutil.which", nothing)

    with pytest.raises(NoBinary, match="embedded"):
        nats_server.find_binary()


@pytest.mark.slow
async def test_three_servers_keep_what_is_acknowledged_when_the_leader_is_killed(tmp_path: Path):
    servers = nats_server.start_cluster(tmp_path)
    try:
        async with jetstream(servers[0]) as js:
            await js.add_stream(StreamConfig(name="EVENTS", subjects=["ev.>"], num_replicas=3))
            for n in range(20):
                for _ in range(300):  # the others hear only a moment later that there is a stream
                    with contextlib.suppress(NatsError):
                        await js.publish(f"ev.{n}", b"x", timeout=2, headers={"Nats-Msg-Id": str(n)})
                        break
                    await asyncio.sleep(0.1)
            info = await js.stream_info("EVENTS")
        assert info.state.messages == 20
        assert info.cluster is not None
        [leader] = [each for each in servers if each.conf.name == info.cluster.leader]
        os.kill(leader.pid, signal.SIGKILL)
        [other, _] = [each for each in servers if each is not leader]
        async with jetstream(other) as js:
            for _ in range(60):  # a new leader takes seconds
                with contextlib.suppress(NatsError):
                    await js.publish("ev.after", b"x", timeout=1, headers={"Nats-Msg-Id": "after"})
                    break
                await asyncio.sleep(0.5)
            assert (await js.stream_info("EVENTS")).state.messages == 21
    finally:
        for each in servers:
            each.stop()
