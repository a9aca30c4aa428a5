"""Models that nodes fetch: who has room for their files, who has them already, and who needs to say nothing of them."""

import pytest
from weft_contracts.digest import files_digest
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.machine import FileFound, FileMissing, FilesCame, FilesFailed, FilesGone, Reported
from weft_contracts.facts.node import Assigned, FilesRetired, FilesWanted, Unassigned
from weft_contracts.facts.run import Ready
from weft_contracts.facts.source import HfSource, SourceFile, UploadSource
from weft_contracts.facts.values import Backend, Hardware, Member, ModelSpec, Weights
from weft_contracts.formats import READS
from weft_contracts.ids import Incarnation, InspectionId, NodeId, ReplicaId
from weft_contracts.source_keys import source_key
from weft_contracts.subjects import machine, node, run
from weft_placement import NoPlace, Placement, Policy, decide_placement, dry_run
from weft_placement.decide import demand_for
from weft_placement.explain import explain
from weft_placement.filters.disk import STAYS_FREE, disk, room_for
from weft_placement.planned_fleet import PlannedFleet
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
HUB = HfSource(repository="Qwen/Qwen3-0.6B-GGUF", file="Q8_0")
PINNED = HUB.model_copy(update={"revision": "1" * 40})
WEIGHTS = Weights(format="gguf", weight_bytes=1_000_000, kv_bytes_per_token=100)
FILES = (SourceFile(name="one.gguf", size=6 * GIB), SourceFile(name="two.gguf", size=4 * GIB))
SPEC = ModelSpec(source=PINNED, engine="llama.cpp", weights=WEIGHTS, files=FILES)


def with_disk(log: FleetLog, name: str, disk_free: int | None) -> NodeId:
    """A node whose disk has so much free."""
    id = log.node(name, GIB)
    hardware = log.fleet.nodes[id].hardware
    assert hardware is not None
    told = Hardware.model_validate({**hardware.model_dump(), "disk_free": disk_free})
    backend = Backend(engine="llama.cpp", version="1", vendors=tuple({each.vendor for each in told.devices}))
    log.add(
        machine(id), Reported(hardware=told, backends=(backend,), builtins=(), agent_version="1", reads=dict(READS))
    )
    return id


def placed(log: FleetLog) -> NodeId | dict[str, int]:
    """Where a replica goes, or why nowhere."""
    log.model("m", SPEC, replicas=1)
    outcome = decide_placement(log.fleet, next(reversed(log.fleet.replicas)), Policy(), now=1.0, seed=0)
    if isinstance(outcome, NoPlace):
        return outcome.receipt.refusals
    assert isinstance(outcome, Placement)
    return outcome.members[0].node


def test_a_disk_must_take_the_files_with_a_twentieth_and_a_gibibyte_more() -> None:
    needed = room_for(10 * GIB)
    assert 10 * GIB + 10 * GIB // 20 + STAYS_FREE == needed
    log = FleetLog()
    exact = with_disk(log, "exact", needed)
    assert exact == placed(log)

    log = FleetLog()
    with_disk(log, "short", needed - 1)
    told = "5 % to spare and 1 GiB that stays so among them"
    assert {f"has too little disk for the model's files of 10.00 GiB: 11.50 GiB must be free, {told}": 1} == placed(log)


def test_a_disk_of_which_nothing_is_known_passes() -> None:
    log = FleetLog()
    assert with_disk(log, "silent", None) == placed(log)


def test_a_full_disk_that_has_the_files_passes_until_they_are_gone() -> None:
    # given
    log = FleetLog()
    full = with_disk(log, "full", 0)
    # when, then
    log.add(machine(full), FilesCame(files=files_digest(SPEC), bytes=10 * GIB))
    assert full == placed(log)
    # when, then
    log.add(machine(full), FilesGone(files=files_digest(SPEC)))
    assert isinstance(placed(log), dict)


def test_what_a_node_is_to_fetch_ahead_of_need_is_not_free_until_it_came_or_failed_or_is_wanted_no_more() -> None:
    # given two nodes with room for the files and a little more, of which one is to fetch others first
    other = SPEC.model_copy(update={"files": (SourceFile(name="other.gguf", size=2 * GIB),)})
    digest = files_digest(other)
    wanted = FilesWanted(files=digest, source=PINNED, listed=other.files, bytes=2 * GIB)
    log = FleetLog()
    id = with_disk(log, "promised", room_for(12 * GIB) - 1)
    log.add(node(id), wanted)
    # then it has no room
    refusals = placed(log)
    assert isinstance(refusals, dict)
    assert any("too little disk" in each for each in refusals)
    (replica,) = log.fleet.replicas
    (answer,) = explain(log.fleet, replica).answers
    assert "2.10 GiB of it for files that it is to fetch" in str(answer.refusal)
    # when they came, failed, or are wanted no more, then it has
    for over in (FilesCame(files=digest, bytes=2 * GIB), FilesFailed(files=digest, reason="the hub is away")):
        log = FleetLog()
        id = with_disk(log, "promised", room_for(12 * GIB) - 1)
        log.add(node(id), wanted)
        log.add(machine(id), over)
        assert id == placed(log)
    log.add(node(id), FilesRetired(files=digest))
    assert id == placed(log)
    # and of the same files nothing is promised twice
    log = FleetLog()
    id = with_disk(log, "promised", room_for(10 * GIB))
    log.add(node(id), FilesWanted(files=files_digest(SPEC), source=PINNED, listed=FILES, bytes=10 * GIB))
    assert id == placed(log)


def test_what_replicas_are_to_fetch_on_a_node_is_not_free_until_it_came_or_they_are_ready_or_gone() -> None:
    # given a node with room for one of two models, and a replica of the other that is to run there
    other = SPEC.model_copy(update={"files": (SourceFile(name="other.gguf", size=2 * GIB),)})
    room = room_for(12 * GIB) - 1

    def assigned() -> tuple[FleetLog, NodeId, ReplicaId]:
        log = FleetLog()
        id = with_disk(log, "busy", room)
        model = log.model("other", other, replicas=1)
        (replica,) = log.fleet.models[model].replicas
        fact = Assigned(
            replica=replica,
            model=model,
            model_name="other",
            revision=1,
            digest="other-1",
            epoch=1,
            members=(Member(node=id, rank=0, devices=()),),
            spec=other,
        )
        log.add(node(id), fact)
        return log, id, replica

    # then a replica of the one has no room
    log, id, replica = assigned()
    refusals = placed(log)
    assert isinstance(refusals, dict)
    assert any("too little disk" in each for each in refusals)
    (answer,) = explain(log.fleet, next(reversed(log.fleet.replicas))).answers
    assert "2.10 GiB of it for files that it is to fetch" in str(answer.refusal)
    # when its files came, or it is ready, or unassigned, then it has
    log.add(machine(id), FilesCame(files=files_digest(other), bytes=2 * GIB))
    assert id == placed(log)
    log, id, replica = assigned()
    ready = Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="llama.cpp", engine_version="1")
    log.add(run(id, replica), ready)
    assert id == placed(log)
    log, id, replica = assigned()
    log.add(node(id), Unassigned(replica=replica, deadline_s=1, why="not wanted"))
    assert id == placed(log)


def test_what_is_planned_on_a_node_takes_its_disk_before_it_is_in_the_log() -> None:
    # given two models, and one node that has room for either
    log = FleetLog()
    id = with_disk(log, "one", room_for(15 * GIB))
    other = SPEC.model_copy(update={"files": (SourceFile(name="other.gguf", size=10 * GIB),)})
    for name, spec in (("first", SPEC), ("second", other)):
        log.model(name, spec, replicas=1)
    first, second = log.fleet.replicas
    # when the one is planned
    planned = PlannedFleet(log.fleet)
    view = log.fleet.replicas[first]
    planned.plan(view, (Member(node=id, rank=0, devices=()),), view.cause)
    # then the other has no room
    demand = demand_for(log.fleet, log.fleet.replicas[second], Policy())
    refused = disk(log.fleet.nodes[id], planned.assigned(id), demand)
    assert refused is not None
    assert disk(log.fleet.nodes[id], log.fleet.assigned(id), demand) is None
    planned.release(view)


def test_a_node_that_has_the_files_is_preferred_over_those_that_would_fetch_them() -> None:
    log = FleetLog()
    for name in ("a", "b", "c"):
        with_disk(log, name, 100 * GIB)
    log.add(machine(NodeId("n-b")), FilesCame(files=files_digest(SPEC), bytes=10 * GIB))
    assert NodeId("n-b") == placed(log)


def test_a_node_that_could_not_reach_the_source_may_still_get_the_files_from_others() -> None:
    log = FleetLog()
    away = with_disk(log, "away", 100 * GIB)
    missing = FileMissing(inspection=InspectionId("i-1"), source=source_key(PINNED), reason="the hub can't be reached")
    log.add(machine(away), missing)
    assert away == placed(log)


def test_an_explanation_tells_what_the_nodes_own_disk_has() -> None:
    log = FleetLog()
    with_disk(log, "short", 3 * GIB)
    with_disk(log, "wide", 100 * GIB)
    log.model("m", SPEC, replicas=1)
    answers = {each.name: each.refusal for each in explain(log.fleet, next(reversed(log.fleet.replicas))).answers}
    assert answers["wide"] is None
    assert str(answers["short"]).endswith("; it has 3.00 GiB")


def test_a_node_that_cannot_read_such_a_source_says_so() -> None:
    log = FleetLog()
    log.node("old", GIB)
    assert {"has a worker of an earlier version, which can't read sources that workers fetch": 1} == placed(log)


@pytest.mark.parametrize(("pinned", "size"), [("1" * 40, 10 * GIB), ("2" * 40, GIB)])
def test_a_dry_run_takes_the_files_of_the_commit_that_was_found(pinned: str, size: int) -> None:
    # given
    log = FleetLog()
    older, newer = (HUB.model_copy(update={"revision": digit * 40}) for digit in "12")
    for name, source, files in (("a", older, FILES), ("b", newer, (SourceFile(name="one.gguf", size=GIB),))):
        body = {"inspection": "i-1", "source": source_key(HUB), "size": 1, "weights": WEIGHTS, "files": files}
        log.add(machine(with_disk(log, name, 2 * GIB)), FileFound.model_validate(body | {"pinned": source}))
    asked = ModelSpec(source=HUB, engine="llama.cpp")
    # when
    found = dry_run(log.fleet, "m", asked, pinned=source_key(HUB.model_copy(update={"revision": pinned})))
    # then
    assert size == sum(file.size for file in found.spec.files)
    assert not found.fits
    assert WEIGHTS == found.spec.weights


def test_of_a_file_that_is_to_be_sent_the_claim_is_of_what_its_sender_told() -> None:
    # given a node with room, and a file whose sender has read its header
    log = FleetLog()
    with_disk(log, "a", 9 * GIB)
    file = SourceFile(name="m.gguf", size=3 * GIB, checksum="blake3:" + "b" * 64)
    told = WEIGHTS.model_copy(update={"layers": 4, "layer_runs": (LayerRun(4, 250_000, 25),), "output_bytes": 1})
    spec = ModelSpec(source=UploadSource(name="m.gguf"), engine="llama.cpp", files=(file,), weights=told)
    # when a deploy of it is tried
    tried = dry_run(log.fleet, "toy", spec)
    # then it has a place, without what no claim is computed from, as it would be accepted
    assert (told.without_layers, (file,), True) == (tried.spec.weights, tried.spec.files, tried.fits)
    # and where it is so already it would be no new revision
    log.model("toy", tried.spec)
    assert 1 == dry_run(log.fleet, "toy", spec).revision
    # and a disk that is too full refuses it before anything is sent
    full = FleetLog()
    with_disk(full, "a", 3 * GIB)
    assert not dry_run(full.fleet, "toy", spec).fits
