"""What a node tells of its installs, its loads and its memory, and when."""

import mmap
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.ids import ReplicaId
from weft_contracts.signals import PROGRESS_AGAIN_S, PROGRESS_BYTES, InstallSaid, LoadSaid, MemorySaid, NodeProgress
from weft_worker_agent.domain.install_progress import InstallProgress
from weft_worker_agent.domain.node_progress import (
    WeightsTaken,
    install_said,
    is_due,
    memory_told,
    taken_more,
    told,
)
from weft_worker_agent.outbound.machine.memory_use import by_host
from weft_worker_agent.outbound.processes.weights_taken import weights_taken

from .conftest import NODE

MIB = 1 << 20
NOTHING = NodeProgress(node=NODE)
INSTALL = InstallSaid(engine="e", version="1", vendor="cpu", phase="resolving", since_s=1.0)
MEMORY = MemorySaid(replica=ReplicaId("m-1"), device=0, used=7)


def said(**fields: Any) -> NodeProgress:
    return NodeProgress(node=NODE, **fields)


def test_a_phase_is_told_at_once_and_what_stands_still_again_after_a_while() -> None:
    first = said(installs=(INSTALL,))
    assert is_due(None, first, 0.0)
    later = said(installs=(INSTALL.model_copy(update={"since_s": 5.0, "fetching_s": 4.0}),))
    assert not is_due(first, later, PROGRESS_AGAIN_S - 0.1), "time alone is no news"
    assert is_due(first, later, PROGRESS_AGAIN_S)
    assert is_due(first, said(installs=(INSTALL.model_copy(update={"phase": "checking"}),)), 0.0)
    assert is_due(first, said(installs=(INSTALL.model_copy(update={"overdue": True}),)), 0.0)


def test_the_end_is_told_once_and_nothing_is_told_of_nothing() -> None:
    assert is_due(said(memory=(MEMORY,)), NOTHING, 0.0)
    assert not is_due(NOTHING, NOTHING, 1e9)
    assert not is_due(None, NOTHING, 1e9)


def test_an_install_is_overdue_from_the_operators_time_on() -> None:
    def after(since_s: float) -> bool:
        progress = InstallProgress("checking")
        return install_said("e", "1", "cpu", progress, since_s=since_s, fetching_s=0, overdue_s=900).overdue

    assert [False, True] == [after(899.9), after(900.0)]


@given(st.text(max_size=300), st.integers(0, 1 << 59), st.integers(0, 1 << 59), st.floats(-1e6, 1e6))
def test_whatever_an_installer_said_can_be_told(package: str, fetched: int, total: int, passed: float) -> None:
    progress = InstallProgress("fetching", package, fetched, total)
    install = install_said("e", "1", "cpu", progress, since_s=passed, fetching_s=passed, overdue_s=1)
    assert install == InstallSaid.model_validate_json(install.model_dump_json())
    assert install.fetched <= install.total


def test_a_signal_is_no_larger_than_what_is_read() -> None:
    long = INSTALL.model_copy(update={"package": "p" * 128, "version": "1" * 64, "fetched": 1 << 60, "total": 1 << 60})
    load = LoadSaid(replica=ReplicaId("m" * 40), taken=1 << 60, total=1 << 60, loading_s=1e9)
    memory = MemorySaid(replica=ReplicaId("m" * 40), device=1 << 16, used=1 << 60)
    progress = told(NODE, (long,) * 100, (load,) * 100, (memory,) * 300)
    assert (32, 64, 256) == (len(progress.installs), len(progress.loads), len(progress.memory))
    assert len(progress.model_dump_json(exclude_defaults=True)) <= PROGRESS_BYTES
    assert progress == NodeProgress.model_validate_json(progress.model_dump_json())


@given(st.lists(st.integers(0, 1000), max_size=20))
def test_what_was_taken_never_falls_and_counts_from_the_first_of_it(looks: list[int]) -> None:
    taken = WeightsTaken()
    for at, bytes in enumerate(looks):
        before, taken = taken, taken_more(taken, bytes, float(at))
        assert taken.bytes == max(before.bytes, bytes)
    first = next((float(at) for at, bytes in enumerate(looks) if bytes), None)
    assert first == taken.first_at


@given(st.lists(st.integers(0, 100 * MIB), min_size=1), st.integers(0, 100 * MIB))
def test_memory_is_told_anew_only_when_it_is_wrong_by_a_step(looks: list[int], claimed: int) -> None:
    last: int | None = None
    for used in looks:
        last = memory_told(last, used, claimed)
        assert abs(last - used) <= max(0.02 * claimed, 16 * MIB)
    assert looks[0] == memory_told(None, looks[0], claimed)


@contextmanager
def taking(program: str, *given: str) -> Generator[int]:
    """A process that has run these lines and waits; gives its id."""
    code = f"import sys, mmap\n{program}\nprint(flush=True)\ninput()"
    command = [sys.executable, "-c", code, *given]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


MAPS = f"""
file = open(sys.argv[1], "rb")
view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
file.close()
sum(view[at] for at in range(0, int(sys.argv[2]), {mmap.PAGESIZE}))
"""
READS = 'file = open(sys.argv[1], "rb", buffering=0)\nleft = int(sys.argv[2])\nfile.read(left)'


@pytest.mark.skipif(not psutil.LINUX, reason="other systems don't tell it")
@pytest.mark.parametrize("program", [MAPS, READS], ids=["mapped", "read"])
def test_how_much_of_its_weights_an_engine_has_taken_is_seen_from_outside(tmp_path: Path, program: str) -> None:
    # given a model in two files, and another one beside it
    first, second, other = (tmp_path / name for name in ("a-1.gguf", "a-2.gguf", "notes.txt"))
    for file in (first, second, other):
        file.write_bytes(b"\1" * 8 * MIB)
    with taking(program, str(first), str(8 * MIB)) as one, taking(program, str(other), str(8 * MIB)) as nothing:
        # then what an engine has taken of it counts, whether it is named by its file or its folder
        assert 8 * MIB == weights_taken(one, first)
        assert 8 * MIB == weights_taken(one, tmp_path)
        assert 0 == weights_taken(nothing, first)
    with taking(program, str(second), str(2 * MIB)) as half:
        assert 2 * MIB <= (weights_taken(half, first) or 0) <= 8 * MIB
    assert weights_taken(half, first) is None


def test_what_a_host_holds_of_an_accelerator_counts_with_what_it_started() -> None:
    starts = "import subprocess\nchild = subprocess.Popen(['sleep', '60'])"
    with taking(starts) as host, taking("pass") as other:
        (child,) = psutil.Process(host).children()
        try:
            held = {host: 5, child.pid: 7, other: 9, 2**22 + 1: 11}
            assert {host: 12} == by_host(held, {host})
            assert {host: 12, other: 9} == by_host(held, {host, other})
            assert {host: None} == by_host({host: 5, child.pid: None}, {host})
        finally:
            child.kill()
