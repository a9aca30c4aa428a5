"""On which processors an engine host runs."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_engine.launch import NumaBinding
from weft_engine.numa import bind

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system binds no process")


def threads_of(pid: int) -> list[int]:
    return [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]


def said(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "launch-0.err").read_text().splitlines())
    return [line for line in lines if line["event"] == event]


async def test_a_host_and_all_its_threads_keep_to_the_processors_of_their_node(
    start: StartHost, tmp_path: Path
) -> None:
    # given a node of which one processor is left to this process
    mine = os.sched_getaffinity(0)
    one = max(mine)
    # when a host is started there
    async with start(numa={"node": 1, "processors": f"{one},4000-4095"}) as host:
        await host.phase("ready")
        bound = {thread: os.sched_getaffinity(thread) for thread in threads_of(host.process.pid)}
    # then it runs there alone, its log says so, and nothing else is bound
    assert {one} == set().union(*bound.values())
    assert [(1, str(one))] == [
        (line["numa_node"], line["processors"]) for line in said(tmp_path, "bound to a NUMA node")
    ]
    assert mine == os.sched_getaffinity(0)


async def test_a_host_without_a_node_runs_wherever_it_may(start: StartHost, tmp_path: Path) -> None:
    async with start() as host:
        await host.phase("ready")
        assert os.sched_getaffinity(0) == os.sched_getaffinity(host.process.pid)

    assert [] == said(tmp_path, "bound to a NUMA node")


async def test_a_node_of_which_nothing_is_left_is_said_and_the_engine_runs_all_the_same(
    start: StartHost, tmp_path: Path
) -> None:
    async with start(numa={"node": 7, "processors": "8000-8001"}) as host:
        await host.phase("ready")
        assert os.sched_getaffinity(0) == os.sched_getaffinity(host.process.pid)

    assert [7] == [line["numa_node"] for line in said(tmp_path, "not bound to its NUMA node")]


def test_where_the_system_binds_no_process_that_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")

    assert not bind(NumaBinding(node=0, processors="0"))
