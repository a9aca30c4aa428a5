"""Who needs a model's files, and who has them, by the log alone."""

from typing import Any

import pytest
from weft_contracts.digest import files_digest
from weft_contracts.facts.machine import FilesCame, FilesFailed, FilesGone
from weft_contracts.facts.node import Assigned, Expired, FilesRetired, FilesWanted, Unassigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Failed, Stopped
from weft_contracts.facts.source import HfSource, SimulatedSource, SourceFile
from weft_contracts.facts.values import Member, ModelSpec, Receipt
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import machine, node, run
from weft_contracts.subjects import replica as aggregate_of
from weft_fleet import node_files
from weft_fleet.files_needed import AHEAD, FilesNeed, files_held, files_needed
from weft_testing.fleet_log import FleetLog, refold

SOURCE = HfSource(repository="o/m", revision="c" * 40)
SPEC = ModelSpec(
    source=SOURCE,
    engine="llama.cpp",
    files=(SourceFile(name="m.gguf", size=5, checksum="sha256:" + "a" * 64),),
)
FILES = files_digest(SPEC)
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)


def place(log: FleetLog, id: ReplicaId, on: NodeId, epoch: int = 1) -> int:
    """The sequence of the assignment."""
    view = log.fleet.replicas[id]
    _, spec = log.fleet.spec_of(view)
    members = (Member(node=on, rank=0, devices=()),)
    at: dict[str, Any] = {"model": view.model, "revision": view.revision, "epoch": epoch, "members": members}
    done = log.add(node(on), Assigned(replica=id, model_name="mine", digest=view.digest, spec=spec, **at))
    log.add(aggregate_of(id), Placed(receipt=RECEIPT, **at))
    return done.sequence


def a_mesh() -> tuple[FleetLog, list[NodeId], list[ReplicaId]]:
    """Three nodes and as many replicas of a model, none of which has a place."""
    log = FleetLog()
    nodes = [log.node(name, 1 << 30) for name in ("a", "b", "c")]
    id = log.model("mine", SPEC, replicas=3)
    return log, nodes, list(log.fleet.models[id].replicas)


def test_nodes_need_the_files_of_their_standing_assignments_in_the_order_of_the_log() -> None:
    log, (a, b, c), (one, two, three) = a_mesh()
    log.model("other", ModelSpec(source=SimulatedSource(), engine="simulated"), replicas=1)
    assert {} == files_needed(log.fleet, FILES)
    later, first = place(log, two, b), place(log, one, c)
    assert [(b, later), (c, first)] == [(id, need.sequence) for id, need in files_needed(log.fleet, FILES).items()]
    # a second replica on one node changes nothing of its place
    place(log, three, b)
    assert [(b, later), (c, first)] == [(id, need.sequence) for id, need in files_needed(log.fleet, FILES).items()]
    assert a not in files_needed(log.fleet, FILES)
    assert {} == files_needed(log.fleet, "0" * 16)


def test_who_is_unassigned_or_has_failed_needs_them_no_more_and_who_tries_again_does() -> None:
    log, (a, b, c), (one, two, three) = a_mesh()
    for id, on in ((one, a), (two, b), (three, c)):
        place(log, id, on)
    log.add(node(a), Unassigned(replica=one, why="retired", deadline_s=1.0))
    log.add(run(b, two), Stopped(epoch=1, why="exited", detail="the hub is away"))
    log.add(run(c, three), Failed(epoch=1, reason="for good", permanent=True, starts=1))
    assert [(b, True)] == [(id, need.rests) for id, need in files_needed(log.fleet, FILES).items()]


def test_two_models_of_the_same_files_need_the_same() -> None:
    log, (a, b, _), (one, *_) = a_mesh()
    same = log.model("same", SPEC.model_copy(update={"concurrency": 7}), replicas=1)
    place(log, one, a)
    place(log, next(iter(log.fleet.models[same].replicas)), b)
    assert [a, b] == list(files_needed(log.fleet, FILES))


def test_who_has_files_is_who_said_so_last() -> None:
    log, (a, b, _), (one, two, _) = a_mesh()
    place(log, one, a)
    place(log, two, b)
    for id in (b, a):
        log.add(machine(id), FilesCame(files=FILES, bytes=5))
    assert [a, b] == files_held(log.fleet, FILES)
    log.add(machine(a), FilesGone(files=FILES))
    assert [b] == files_held(log.fleet, FILES)


def test_a_bare_word_is_no_holding_until_the_log_tells_why_the_node_would_have_them() -> None:
    log, (a, b, c), (one, *_) = a_mesh()
    for id in (a, b, c):
        log.add(machine(id), FilesCame(files=FILES, bytes=5))
    assert [] == files_held(log.fleet, FILES)
    # what lay there before it was told to have it counts from then on
    place(log, one, a)
    log.add(node(b), FilesWanted(files=FILES, source=SOURCE, listed=SPEC.files, bytes=5))
    assert [a, b] == files_held(log.fleet, FILES)
    # and also when it need not have it any more
    log.add(node(a), Unassigned(replica=one, why="retired", deadline_s=1.0))
    log.add(node(b), FilesRetired(files=FILES))
    assert [a, b] == files_held(log.fleet, FILES)
    assert refold(log.commits).digest() == log.fleet.digest()


def test_what_a_node_was_told_is_remembered_up_to_a_bound_and_what_it_is_to_have_now_always(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_files, "EXPECTED_KEPT", 3)
    log, (a, *_), _ = a_mesh()
    digests = [f"{number:016x}" for number in range(5)]
    for files in digests:
        log.add(node(a), FilesWanted(files=files, source=SOURCE, listed=SPEC.files, bytes=5))
        if files != digests[0]:
            log.add(node(a), FilesRetired(files=files))
    assert 3 == len(log.fleet.nodes[a].expected)
    log.add(machine(a), *(FilesCame(files=files, bytes=5) for files in digests[:3]))
    assert [[a], [], [a]] == [files_held(log.fleet, files) for files in digests[:3]]
    assert {a: FilesNeed(AHEAD)} == files_needed(log.fleet, digests[0])
    assert digests[1] not in log.fleet.told


class Unwalked(dict[Any, Any]):
    """Gives what it is asked for, and nobody may go through it."""

    def __iter__(self) -> Any:
        raise AssertionError("walked")

    values = items = keys = __iter__


def test_a_question_looks_at_nothing_but_what_it_is_about() -> None:
    log, (a, b, _), (one, *_) = a_mesh()
    placed = place(log, one, a)
    log.add(node(b), FilesWanted(files=FILES, source=SOURCE, listed=SPEC.files, bytes=5))
    log.add(machine(a), FilesCame(files=FILES, bytes=5))
    log.fleet.nodes, log.fleet.models = Unwalked(log.fleet.nodes), Unwalked(log.fleet.models)
    assert {a: FilesNeed(placed), b: FilesNeed(AHEAD)} == files_needed(log.fleet, FILES)
    assert [a] == files_held(log.fleet, FILES)
    assert ({}, []) == (files_needed(log.fleet, "0" * 16), files_held(log.fleet, "0" * 16))


def test_an_expired_node_was_told_nothing() -> None:
    log, (a, *_), (one, *_) = a_mesh()
    place(log, one, a)
    log.add(node(a), Expired(waited_s=1.0))
    assert {} == log.fleet.told
    assert [] == files_held(log.fleet, FILES)


def test_who_is_to_have_files_ahead_of_need_comes_behind_whom_a_replica_needs_them_for() -> None:
    log, (a, b, _), (one, *_) = a_mesh()
    wanted = FilesWanted(files=FILES, source=HfSource(repository="o/m", revision="c" * 40), listed=SPEC.files, bytes=5)
    for id in (a, b):
        log.add(node(id), wanted)
    placed = place(log, one, b)
    assert {b: FilesNeed(placed), a: FilesNeed(AHEAD)} == files_needed(log.fleet, FILES)
    assert [b, a] == list(files_needed(log.fleet, FILES))
    # who failed rests, and who need not have them any more needs nothing
    log.add(machine(a), FilesFailed(files=FILES, reason="the hub is away"))
    assert FilesNeed(AHEAD, rests=True) == files_needed(log.fleet, FILES)[a]
    log.add(node(a), FilesRetired(files=FILES))
    assert [b] == list(files_needed(log.fleet, FILES))
