"""Which NUMA node an engine is kept to."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_worker_agent.domain.numa import Bound, Need, NumaNode, chosen, usable
from weft_worker_agent.outbound.machine.numa_nodes import node_of, numa_nodes

GIB = 1 << 30
TWO = (NumaNode(0, frozenset(range(8)), 64 * GIB), NumaNode(1, frozenset(range(8, 16)), 64 * GIB))


def on(node: int, gib: int) -> Bound:
    return Bound(node, gib * GIB)


@pytest.mark.parametrize(
    ("bound", "need", "node"),
    [
        pytest.param([], Need(8 * GIB, 1), 0, id="the first of equals"),
        pytest.param([on(0, 8)], Need(8 * GIB, 1), 1, id="the one with less claimed"),
        pytest.param([on(0, 8), on(1, 2), on(1, 2)], Need(8 * GIB, 1), 1, id="whatever the number of replicas"),
        pytest.param([on(0, 0)], Need(8 * GIB, 1), 1, id="fewer replicas among equals"),
        pytest.param([on(0, 60), on(1, 50)], Need(14 * GIB, 1), 1, id="where there is room"),
        pytest.param([on(0, 60), on(1, 51)], Need(14 * GIB, 1), None, id="none where there is none"),
        pytest.param([on(0, 60), on(1, 61)], Need(4 * GIB, 1), 0, id="the other while it has room"),
        pytest.param([], Need(65 * GIB, 1), None, id="what is larger than a node has the whole machine"),
        pytest.param([], Need(GIB, 8), 0, id="as many threads as a node has processors"),
        pytest.param([], Need(GIB, 9), None, id="more threads have the whole machine"),
        pytest.param([on(1, 64)], Need(GIB, 1, frozenset({1})), 1, id="a device's node, however full"),
        pytest.param([], Need(GIB, 9, frozenset({1})), None, id="unless the threads don't fit there"),
        pytest.param([], Need(GIB, 1, frozenset({0, 1})), None, id="devices at several nodes say none"),
        pytest.param([], Need(GIB, 1, frozenset({None})), None, id="nor does one that nothing is known of"),
        pytest.param([], Need(GIB, 1, frozenset({0, None})), None, id="also beside another"),
        pytest.param([], Need(GIB, 1, frozenset({5})), None, id="nor one at a node that is not this worker's"),
    ],
)
def test_a_replica_is_kept_to_the_node_that_suits_it(bound: list[Bound], need: Need, node: int | None) -> None:
    found = chosen(TWO, bound, need)

    assert node == (found.index if found is not None else None)


def test_workers_of_one_machine_begin_at_different_nodes() -> None:
    begun = [chosen(TWO, [], Need(GIB, 1), first) for first in range(4)]

    assert [0, 1, 0, 1] == [node.index for node in begun if node is not None]


nodes = st.lists(
    st.builds(NumaNode, st.integers(0, 5), st.frozensets(st.integers(0, 40), max_size=8), st.integers(0, 100)),
    max_size=5,
    unique_by=lambda node: node.index,
)
bounds = st.lists(st.builds(Bound, st.integers(0, 5), st.integers(0, 30)), max_size=8)


@given(nodes, bounds, st.integers(0, 60), st.integers(1, 8), st.integers(0, 9))
def test_no_node_is_filled_beyond_its_memory_or_chosen_over_one_with_less(
    given_: list[NumaNode], bound: list[Bound], bytes: int, threads: int, first: int
) -> None:
    def claimed(node: NumaNode) -> int:
        return sum(each.bytes for each in bound if each.node == node.index)

    fits = [n for n in given_ if claimed(n) + bytes <= n.memory and threads <= len(n.processors)]
    found = chosen(given_, bound, Need(bytes, threads), first)

    if found is None:
        assert not fits
    else:
        assert found in fits
        assert claimed(found) == min(claimed(node) for node in fits)


@given(nodes, st.integers(1, 20), st.integers(0, 9))
def test_replicas_that_are_alike_spread_evenly(given_: list[NumaNode], times: int, first: int) -> None:
    given_ = [NumaNode(node.index, frozenset({node.index}), 1000) for node in given_]
    bound: list[Bound] = []
    for _ in range(times):
        if (node := chosen(given_, bound, Need(7, 1), first)) is not None:
            bound.append(Bound(node.index, 7))

    counts = [sum(each.node == node.index for each in bound) for node in given_]
    assert sum(counts) == (times if given_ else 0)
    assert not counts or max(counts) - min(counts) <= 1


@given(nodes, st.frozensets(st.integers(0, 40)), st.none() | st.frozensets(st.integers(0, 5)), st.integers(1, 4))
def test_a_worker_uses_what_it_may_and_one_node_is_no_choice(
    given_: list[NumaNode], processors: frozenset[int], memories: frozenset[int] | None, parts: int
) -> None:
    left = usable(given_, processors, memories, 50, parts)

    assert len(left) != 1
    whole = {node.index: node for node in given_}
    assert [node.index for node in left] == sorted(node.index for node in left)
    for node in left:
        assert node.processors
        assert node.processors == whole[node.index].processors & processors
        assert node.memory <= min(whole[node.index].memory, 50) / parts
        assert memories is None or node.index in memories or node.memory == 0
    if len([node for node in given_ if node.processors & processors]) > 1:
        assert left


@pytest.fixture
def mine() -> list[int]:
    """The processors that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def machine(root: Path, *nodes: tuple[str, int]) -> Path:
    """A made-up system with these nodes: their processors and GiB of memory."""
    for index, (processors, gib) in enumerate(nodes):
        folder = root / f"sys/devices/system/node/node{index}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{processors}\n")
        total = f"Node {index} MemTotal:       {gib << 20} kB\nNode {index} MemFree:        1024 kB\n"
        (folder / "meminfo").write_text(total)
    (root / "sys/devices/system/node").mkdir(parents=True, exist_ok=True)
    (root / "sys/devices/system/node/online").write_text("0-1\n")
    return root


def file(root: Path, name: str, content: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return root


def test_nodes_are_read_as_linux_tells_them(tmp_path: Path, mine: list[int]) -> None:
    root = machine(tmp_path, (f"{mine[0]},4000-4003", 64), (f"{mine[0]},4004-4007", 32), ("4008-4011", 32), ("", 16))

    first, second = numa_nodes(1, root)

    assert NumaNode(0, frozenset({mine[0]}), 64 * GIB) == first
    assert NumaNode(1, frozenset({mine[0]}), 32 * GIB) == second


def test_a_control_groups_memory_and_a_cpusets_nodes_bound_what_a_worker_counts_on(
    tmp_path: Path, mine: list[int]
) -> None:
    root = machine(tmp_path, (str(mine[0]), 64), (str(mine[0]), 32))
    file(root, "sys/fs/cgroup/memory.max", f"{48 * GIB}\n")
    file(root, "proc/self/status", "Name:\tx\nMems_allowed:\t1\nMems_allowed_list:\t0\nvoluntary:\t1\n")

    assert [48 * GIB, 0] == [node.memory for node in numa_nodes(1, root)]
    assert [24 * GIB, 0] == [node.memory for node in numa_nodes(2, root)]


def test_where_there_is_one_node_or_nothing_can_be_read_there_is_no_choice(tmp_path: Path, mine: list[int]) -> None:
    everything = f"{mine[0]}-{mine[-1]}"

    assert () == numa_nodes(1, tmp_path / "nothing")
    assert () == numa_nodes(1, machine(tmp_path / "one", (everything, 64)))
    assert () == numa_nodes(1, machine(tmp_path / "bound", (everything, 64), ("4000-4003", 64)))
    wrong = machine(tmp_path / "wrong", (everything, 64), ("none of them", 64))
    assert () == numa_nodes(1, wrong)


def test_a_machine_whose_system_binds_no_process_has_no_nodes(
    tmp_path: Path, mine: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine(tmp_path, (str(mine[0]), 64), (str(mine[0]), 64))
    monkeypatch.delattr(os, "sched_getaffinity")

    assert () == numa_nodes(1, root)


def test_a_devices_node_is_read_by_its_address(tmp_path: Path) -> None:
    file(tmp_path, "sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n")
    file(tmp_path, "sys/bus/pci/devices/0000:4d:00.0/numa_node", "-1\n")
    file(tmp_path, "sys/bus/pci/devices/numa_node", "3\n")

    assert 1 == node_of("0000:3b:00.0", tmp_path)
    assert node_of("0000:4d:00.0", tmp_path) is None
    assert node_of("0000:99:00.0", tmp_path) is None
    assert node_of("", tmp_path) is None
