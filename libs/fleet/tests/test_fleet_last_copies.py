"""Which node's copy of files that were sent is the one that stays."""

import pytest
from weft_contracts.digest import files_digest
from weft_contracts.facts.machine import FilesCame, Reported
from weft_contracts.facts.model import Deleted
from weft_contracts.facts.node import CutOff, Draining, FilesRetired, Removed, WentOffline
from weft_contracts.facts.source import HfSource, SourceFile, UploadSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import NodeId
from weft_contracts.subjects import machine, model, node
from weft_fleet.last_copies import last_copies
from weft_testing.fleet_log import FleetLog

from .test_fleet_files_needed import place

SENT = ModelSpec(
    source=UploadSource(name="m.gguf"),
    engine="llama.cpp",
    files=(SourceFile(name="m.gguf", size=5, checksum="blake3:" + "a" * 64),),
)
FILES = files_digest(SENT)


def a_mesh(*hosts: str, spec: ModelSpec = SENT) -> tuple[FleetLog, list[NodeId]]:
    """A node at each host, all with the files of a model that was deployed; by id."""
    log = FleetLog()
    nodes = sorted(log.node(f"{number}", 1 << 30, host=host) for number, host in enumerate(hosts))
    for each in nodes:
        reads(log, each, dict(WORKERS_READ))
    id = log.model("mine", spec, replicas=len(hosts))
    for replica, on in zip(log.fleet.models[id].replicas, nodes, strict=True):
        place(log, replica, on)
        log.add(machine(on), FilesCame(files=files_digest(spec), bytes=5))
    return log, nodes


def reads(log: FleetLog, id: NodeId, formats: dict[str, int]) -> None:
    """A node's worker says so."""
    hardware = log.fleet.nodes[id].hardware
    assert hardware is not None
    log.add(machine(id), Reported(hardware=hardware, backends=(), builtins=(), agent_version="2", reads=formats))


def keepers(log: FleetLog, nodes: list[NodeId], files: str = FILES) -> list[bool]:
    kept = last_copies(log.fleet, files)
    assert kept is None or kept.model == "mine"
    return [kept is not None and kept.stays(log.fleet.nodes[id]) for id in nodes]


def test_the_only_copy_of_what_was_sent_stays_while_its_model_is_deployed() -> None:
    log = FleetLog()
    here, model_id = log.node("a", 1 << 30), log.model("mine", SENT)
    log.add(machine(here), FilesCame(files=FILES, bytes=5))
    assert [True] == keepers(log, [here])
    log.add(model(model_id), Deleted())
    assert [False] == keepers(log, [here])


def test_of_several_copies_one_stays_whoever_asks_first() -> None:
    log, nodes = a_mesh("a", "b", "c")
    assert [True, False, False] == keepers(log, nodes)


@pytest.mark.parametrize(
    "fact", [WentOffline(silent_for=9.0), CutOff(why="x"), Draining(why="admin", deadline_s=9), Removed(why="x")]
)
def test_a_copy_that_can_not_be_counted_on_is_none(fact: WentOffline | CutOff | Draining | Removed) -> None:
    log, (first, second) = a_mesh("a", "b")
    log.add(node(first), fact)
    assert [True] == keepers(log, [second])


def test_a_copy_that_was_told_to_go_is_none_and_one_that_only_need_not_be_kept_is_one() -> None:
    log, (first, second) = a_mesh("a", "b")
    log.add(node(first), FilesRetired(files=FILES))
    assert [True, False] == keepers(log, [first, second])
    log.add(node(first), FilesRetired(files=FILES, remove=True))
    assert [False, True] == keepers(log, [first, second])


def test_what_one_node_of_a_machine_removes_the_machine_has_no_more() -> None:
    log, (first, second, other) = a_mesh("a", "a", "b")
    log.add(node(first), FilesRetired(files=FILES, remove=True))
    assert [True, True] == keepers(log, [second, other])


def test_a_worker_that_was_put_back_to_a_release_without_such_files_is_not_counted_on() -> None:
    log, (first, second) = a_mesh("a", "b")
    reads(log, first, {})
    assert [True] == keepers(log, [second])


def test_nodes_of_one_machine_have_one_copy_as_they_may_share_a_store() -> None:
    log, nodes = a_mesh("a", "b", "a", "a")
    found = dict(zip(nodes, keepers(log, nodes), strict=True))
    hosts = {id: log.fleet.nodes[id].addresses.host for id in nodes}
    keeps = hosts[nodes[0]]
    assert {id: host == keeps for id, host in hosts.items()} == found


def test_what_a_source_has_may_go() -> None:
    spec = SENT.model_copy(update={"source": HfSource(repository="o/m", revision="c" * 40)})
    log, nodes = a_mesh("a", spec=spec)
    assert [False] == keepers(log, nodes, files_digest(spec))
    assert last_copies(log.fleet, "0" * 16) is None
