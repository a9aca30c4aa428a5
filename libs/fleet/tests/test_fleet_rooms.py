"""What an eviction means for who gives way and for who waits."""

from dataclasses import replace

from weft_contracts.facts.model import Deleted, GaveWay, Sized
from weft_contracts.facts.replica import Evicted, Placed, Unplaceable
from weft_contracts.facts.sizing import DemandSeen, ScalingPolicy, SizingReceipt
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.subjects import model, replica
from weft_fleet.model_view import GAVE_WAY_KEPT
from weft_testing.fleet_log import FleetLog, refold

RECEIPT = Receipt(position=0, policy="", policy_digest="", seed=0, trigger="", decided_at=0, refusals={}, candidates=())
OLD, NEW = ReplicaId("m-old-1"), ReplicaId("m-new-1")
ROOM = (Member(node=NodeId("n-a"), rank=0, devices=(DeviceClaim(index=0, bytes=8),)),)


def spec(least: int = 0, most: int = 4) -> ModelSpec:
    return ModelSpec(source=SimulatedSource(), engine="simulated", min_replicas=least, max_replicas=most)


def a_mesh(least: int = 0, most: int = 4) -> FleetLog:
    log = FleetLog()
    log.node("a", 8)
    log.model("old", spec(least, most), replicas=2)
    log.model("new", spec(), replicas=1)
    return log


def ends(log: FleetLog, id: ReplicaId = OLD, waiting: ReplicaId = NEW, until: float = 90.0) -> None:
    fact = Evicted(why="it was idle", waiting=waiting, model=ModelId("m-new"), members=ROOM, until=until)
    log.add(replica(id), fact)


def test_room_is_kept_for_who_waits_with_all_that_ended_for_it() -> None:
    log = a_mesh()
    ends(log)
    ends(log, ReplicaId("m-old-2"))
    room = log.fleet.rooms[NEW]
    assert (ROOM, 90.0, (OLD, ReplicaId("m-old-2")), "it was idle") == (
        room.members,
        room.until,
        room.evicted,
        room.why,
    )
    # a later decision's takes its place
    ends(log, ReplicaId("m-old-3"), until=200.0)
    assert 90.0 == log.fleet.rooms[NEW].until, "nobody knows that replica"
    log.scale(ModelId("m-old"), 1)
    ends(log, ReplicaId("m-old-3"), until=200.0)
    assert (200.0, (ReplicaId("m-old-3"),)) == (log.fleet.rooms[NEW].until, log.fleet.rooms[NEW].evicted)
    assert refold(log.commits) == log.fleet


def test_no_room_is_kept_for_who_has_a_place_or_is_wanted_no_more() -> None:
    log = a_mesh()
    ends(log)
    placed = Placed(model=ModelId("m-new"), revision=1, epoch=1, members=ROOM, receipt=RECEIPT)
    log.add(replica(NEW), placed)
    assert {} == log.fleet.rooms
    log = a_mesh()
    ends(log)
    log.add(model(ModelId("m-new")), Deleted())
    assert {} == log.fleet.rooms
    ends(log, ReplicaId("m-old-2"))
    assert {} == log.fleet.rooms


def test_a_model_that_gave_way_has_one_fewer_and_remembers_for_whom() -> None:
    log = a_mesh()
    receipt = SizingReceipt(position=0, decided_at=5.0, seed=0, policy=ScalingPolicy(), seen=DemandSeen())
    log.add(model(ModelId("m-old")), Sized(replicas=2, was=1, places=3, why="busy", receipt=receipt))
    log.now += 7
    ends(log)
    view = log.fleet.models[ModelId("m-old")]
    assert view.size is not None
    assert (1, 2, 3, "it was idle") == (view.size.replicas, view.size.was, view.size.places, view.size.why)
    assert {"m-new": log.commits[-1].at} == view.gave_way
    ends(log, ReplicaId("m-old-2"))
    assert log.fleet.models[ModelId("m-old")].asleep


def test_that_a_model_gave_way_moves_it_and_changes_nothing_beside() -> None:
    log = a_mesh()
    ends(log)
    before = log.fleet.models[ModelId("m-old")]
    gave_way = log.add(model(ModelId("m-old")), GaveWay(replicas=(OLD,), waiting=NEW))
    moved = log.fleet.models[ModelId("m-old")]
    assert (gave_way.sequence, gave_way.cause) == (moved.sequence, moved.cause)
    assert before == replace(moved, sequence=before.sequence, cause=before.cause)


def test_a_model_whose_number_is_told_keeps_it_whatever_ends() -> None:
    log = a_mesh(2, 2)
    ends(log)
    assert log.fleet.models[ModelId("m-old")].size is None


def test_an_eviction_of_before_it_told_for_whom_changes_no_size_and_keeps_no_room() -> None:
    log = a_mesh()
    log.add(replica(OLD), Evicted(why="room"))
    view = log.fleet.models[ModelId("m-old")]
    assert (None, {}, {}) == (view.size, view.gave_way, log.fleet.rooms)


def test_for_whom_a_model_gave_way_is_remembered_of_the_latest_alone() -> None:
    log = a_mesh()
    log.scale(ModelId("m-old"), GAVE_WAY_KEPT + 1)
    for number in range(1, GAVE_WAY_KEPT + 3):
        fact = Evicted(why="x", waiting=NEW, model=ModelId(f"m-{number}"), members=ROOM, until=1.0)
        log.add(replica(ReplicaId(f"m-old-{number}")), fact)
    gave_way = log.fleet.models[ModelId("m-old")].gave_way
    assert (GAVE_WAY_KEPT, "m-3") == (len(gave_way), next(iter(gave_way)))


def test_what_was_read_of_signals_is_left_to_the_log() -> None:
    log = a_mesh()
    kept = {"why": "it was used", "read": {"uses": [{"model": "m-old", "known": True, "idle_s": 3}]}}
    told = {"model": "m-new", "revision": 1, "reason": "none", "receipt": RECEIPT.model_dump(), "kept": kept}
    log.add(replica(NEW), Unplaceable.model_validate(told))
    said = log.fleet.replicas[NEW].unplaceable
    assert said is not None
    assert said.kept is not None
    assert ("it was used", ()) == (said.kept.why, said.kept.read.uses)
