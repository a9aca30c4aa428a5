"""Log tails: the lines of one replica's log, bounded, followed over a renewal, and nothing else."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from weft_runtime import web
from weft_runtime.health import Health
from weft_testing.served import served
from weft_worker_agent.inbound.log_tails import FOLLOWERS, LogTails
from weft_worker_agent.outbound.processes import host_log
from weft_worker_agent.outbound.processes.host_log import HostLog, NoLog
from weft_worker_agent.outbound.supervisor.host_output import HostOutput

REPLICA = "m-x-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A worker's folder of logs with those of two replicas, in a state with a secret."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / f"host-{REPLICA}.log").write_text("".join(f"line {number}\n" for number in range(1, 501)))
    (logs / "host-m-y-1.log").write_text("another replica's\n")
    (tmp_path / "node.seed").write_text("secret\n")
    (logs / "host-m-link-1.log").symlink_to(tmp_path / "node.seed")
    return logs


@pytest.fixture
async def node(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a real server that serves these logs."""
    tails = LogTails(folder, quiet_s=0.2, longest_s=60.0)
    server = web.server(web.app(Health(), [tails.route]), "127.0.0.1", 0)
    async with served(server) as client:
        yield client


async def test_a_tail_has_as_many_lines_as_were_asked_for(node: httpx.AsyncClient) -> None:
    answer = await node.get(f"/logs/{REPLICA}", params={"tail": 3})
    assert (200, "line 498\nline 499\nline 500\n") == (answer.status_code, answer.text)
    assert 100 == (await node.get(f"/logs/{REPLICA}")).text.count("\n")
    assert "" == (await node.get(f"/logs/{REPLICA}", params={"tail": 0})).text


@pytest.mark.parametrize(
    "path",
    [
        "/logs/m-z-9",
        "/logs/m-link-1",
        "/logs/..%2fnode.seed",
        "/logs/%2fetc%2fpasswd",
        f"/logs/{REPLICA}.log",
        f"/logs/{REPLICA}%00",
        "/logs/M-X-1",
        "/logs/" + "a" * 5000,
        "/logs/",
    ],
)
async def test_what_is_no_replica_that_ran_here_has_no_log(node: httpx.AsyncClient, path: str) -> None:
    answer = await node.get(path)
    assert 404 == answer.status_code
    assert "secret" not in answer.text


@pytest.mark.parametrize("tail", ["-1", "many", "10001", "9" * 5000, "1.5", "", "٣"])
async def test_a_tail_that_cant_be_meant_is_refused(node: httpx.AsyncClient, tail: str) -> None:
    answer = await node.get(f"/logs/{REPLICA}", params={"tail": tail})
    assert 400 == answer.status_code
    assert "0 to 10000" in answer.json()["detail"]


async def test_a_followed_log_tells_what_comes_over_its_renewal_and_that_it_lives(
    node: httpx.AsyncClient, folder: Path
) -> None:
    log = folder / f"host-{REPLICA}.log"
    async with node.stream("GET", f"/logs/{REPLICA}", params={"tail": 1, "follow": "true"}) as answer:
        lines = (line async for line in answer.aiter_lines() if line)
        begun = [await anext(lines) for _ in range(4)]
        assert [": log", "data: line 500", "event: caught_up", "data:"] == begun
        # silence
        assert ": quiet" == await anext(lines)
        # a line in two writes, one with a carriage return, then the log is set aside and begun anew
        with log.open("a") as file:
            file.write("half ")
            file.flush()
            await asyncio.sleep(0.3)
            file.write("a line\nprogress 1\rprogress 2\nlast of the old\n")
        os.replace(log, f"{log}.1")
        log.write_text("first of the new\n")
        told = [await anext(line async for line in lines if line.startswith("data")) for _ in range(4)]
    assert [
        "data: half a line",
        "data: progress 1 progress 2",
        "data: last of the old",
        "data: first of the new",
    ] == told


async def test_only_so_many_are_followed_at_once_and_a_place_is_free_when_one_leaves(folder: Path) -> None:
    tails = LogTails(folder, quiet_s=0.05)
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app=Starlette(routes=[tails.route])), base_url="http://node"
    )
    tails._followers = FOLLOWERS
    assert 503 == (await client.get(f"/logs/{REPLICA}?follow=1")).status_code
    stream = tails._follow(HostLog(folder, REPLICA), b"")
    await anext(stream)
    await stream.aclose()
    assert FOLLOWERS == tails._followers


def test_what_the_supervisor_writes_is_what_is_read(tmp_path: Path) -> None:
    output = HostOutput(str(tmp_path / f"host-{REPLICA}.log"))
    output.stdout_line(b'{"phase": "loading"}')
    log = HostLog(tmp_path, REPLICA)
    assert b'{"phase": "loading"}\n' == log.tail(10)
    output.stderr_line(b"no such file")
    assert b"no such file\n" == log.more()
    output.close()


@given(st.lists(st.text("ab\r", max_size=5), max_size=30), st.integers(0, 40), st.text("ab", max_size=3))
def test_tail_and_more_together_are_the_end_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], count: int, unfinished: str
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    path = folder / f"host-{REPLICA}.log"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode() + unfinished.encode())
    log = HostLog(folder, REPLICA)

    tail = log.tail(count)
    with path.open("ab") as file:
        file.write(b"end\nnot yet")
    more = log.more()

    kept = lines[-count:] if count else []
    assert "".join(f"{line}\n" for line in [*kept, f"{unfinished}end"]).encode() == tail + more
    assert b"" == log.more()


def test_a_tail_is_bounded_in_bytes_and_lines_come_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_log, "MAX_BYTES", 1000)
    monkeypatch.setattr(host_log, "_BLOCK", 64)
    path = tmp_path / f"host-{REPLICA}.log"
    path.write_bytes(b"".join(b"%08d\n" % number for number in range(1000)))

    tail = HostLog(tmp_path, REPLICA).tail(host_log.MAX_LINES)

    assert len(tail) <= 1000 + 64
    assert tail.startswith(b"000")
    assert tail.endswith(b"00000999\n")
    assert {8} == {len(line) for line in tail.split()}


def test_a_log_that_is_gone_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / f"host-{REPLICA}.log"
    path.write_text("x\n")
    log = HostLog(tmp_path, REPLICA)
    log.tail(1)
    path.unlink()
    with pytest.raises(NoLog):
        log.more()
