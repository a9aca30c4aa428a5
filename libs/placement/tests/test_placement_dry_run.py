"""A dry run of a deploy: the same answers that the scheduler would give, and nothing changes."""

import pytest
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.mesh import PolicyChosen, PolicySet, PolicyWithdrawn
from weft_contracts.facts.node import Assigned, Draining, WentOffline
from weft_contracts.facts.replica import Evicted, Placed
from weft_contracts.facts.shape import Cache, ModelShape
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Weights
from weft_contracts.ids import InspectionId, ModelId, NodeId, ReplicaId
from weft_contracts.policies import PlacementPolicy, PolicyWeights
from weft_contracts.subjects import MESH, machine, node, replica
from weft_placement import BALANCED, BINPACK, SPREAD, DryRun, Placement, Policy, decide_placement, dry_run
from weft_placement.dry_run import dry_run_in_turns, one_more
from weft_placement.fleet_copy import copied
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
WEIGHTS = Weights(format="gguf", weight_bytes=GIB, kv_bytes_per_token=100, fingerprint="aa")
AT_PATH = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp")
ASKED = InspectionId("i-1")
FOUND = FileFound(inspection=ASKED, source="path:/m", size=1, weights=WEIGHTS)
MISSING = FileMissing(inspection=ASKED, source="path:/m", reason="/m does not exist on this node")


def simulated(size: int, replicas: int = 1) -> ModelSpec:
    return ModelSpec(
        source=SimulatedSource(),
        engine="simulated",
        engine_args={"memory_bytes": size},
        min_replicas=replicas,
        max_replicas=replicas,
    )


def places(log: FleetLog, name: str, spec: ModelSpec) -> list[str | None]:
    """The nodes that a dry run names, replica by replica."""
    run = dry_run(log.fleet, name, spec)
    return [next((a.name for a in each.answers if a.chosen), None) for each in run.explanations]


def really_place(log: FleetLog) -> None:
    """Let every waiting replica have its place, as the scheduler does."""
    for id in tuple(log.fleet.waiting):
        outcome = decide_placement(log.fleet, id, Policy(), now=1.0, seed=0)
        assert isinstance(outcome, Placement)
        view = log.fleet.replicas[id]
        digest, spec = log.fleet.spec_of(view)
        placed = Placed(model=view.model, revision=1, epoch=1, members=outcome.members, receipt=outcome.receipt)
        log.add(replica(id), placed)
        assigned = Assigned(
            replica=id,
            model=view.model,
            model_name="toy",
            revision=view.revision,
            digest=digest,
            epoch=1,
            members=outcome.members,
            spec=spec,
        )
        log.add(node(outcome.members[0].node), assigned)


def test_each_node_says_whether_it_holds_the_file_and_the_claim_is_of_what_was_found() -> None:
    log = FleetLog()
    has, lacks = log.node("a", 4 * GIB), log.node("b", 4 * GIB)
    log.add(machine(has), FOUND)
    log.add(machine(lacks), MISSING)
    before = log.fleet.digest()

    run = dry_run(log.fleet, "toy", AT_PATH)

    assert run.fits
    assert (WEIGHTS, 1, 0) == (run.spec.weights, run.revision, run.staying)
    (explained,) = run.explanations
    assert "it would go to a" == explained.outcome
    refusals = {answer.name: answer.refusal for answer in explained.answers}
    assert {"a": None, "b": "cannot load path:/m: /m does not exist on this node"} == refusals
    assert before == log.fleet.digest()


def test_a_dry_run_places_where_the_scheduler_then_does() -> None:
    log = FleetLog()
    log.node("a", 4 * GIB)
    log.node("b", 2 * GIB)
    expected = places(log, "toy", simulated(GIB, 3))
    log.model("toy", simulated(GIB, 3), replicas=3)

    really_place(log)

    found = [log.fleet.replicas[ReplicaId(f"m-toy-{n}")].members[0].node for n in (1, 2, 3)]
    assert expected == [log.fleet.nodes[id].name for id in found]


def test_the_first_replica_without_a_place_says_what_is_missing_and_is_the_last() -> None:
    log = FleetLog()
    log.node("a", 5 * GIB)

    run = dry_run(log.fleet, "toy", simulated(2 * GIB, 5))

    assert not run.fits
    assert (5, 0, 2) == (run.wanted, run.staying, run.placed)
    assert 3 == len(run.explanations)
    assert "no node can take it; the nearest, a, has no device with 2.00 GiB free" in run.explanations[-1].outcome


def test_a_new_revision_needs_room_beside_one_old_replica_at_a_time() -> None:
    log = FleetLog()
    log.node("a", 5 * GIB)
    log.model("toy", simulated(GIB, 3), replicas=3)
    really_place(log)

    fits = dry_run(log.fleet, "toy", simulated(2 * GIB, 2))
    whale = dry_run(log.fleet, "toy", simulated(3 * GIB))

    # 3 GiB are claimed: 2 more fit, then one old ends and 1 is free, and 2 more don't fit
    assert [2, False] == [len(fits.explanations), fits.fits]
    assert (2, 0, False) == (whale.revision, whale.staying, whale.fits)


def keep_room(log: FleetLog, waiting: ReplicaId, size: int, until: float = 60.0) -> None:
    """Others ended for a replica that waits: device 0 of node a is kept for it."""
    log.model("ended", simulated(GIB), replicas=1)
    room = (Member(node=NodeId("n-a"), rank=0, devices=(DeviceClaim(index=0, bytes=size),)),)
    of = log.fleet.replicas[waiting].model
    log.add(replica(ReplicaId("m-ended-1")), Evicted(why="idle", waiting=waiting, model=of, members=room, until=until))


def test_room_that_is_kept_for_what_waits_is_taken_as_the_scheduler_takes_it() -> None:
    log = FleetLog()
    log.node("a", 5 * GIB)
    log.model("other", simulated(4 * GIB), replicas=1)
    keep_room(log, ReplicaId("m-other-1"), 4 * GIB)
    spec = simulated(2 * GIB)
    one = log.model("toy", spec, replicas=1)

    taken, free = dry_run(log.fleet, "new", spec, now=59.0), dry_run(log.fleet, "new", spec, now=60.0)
    next_ones = [one_more(log.fleet, log.fleet.models[one], now=now).outcome for now in (59.0, 60.0)]

    assert (False, True) == (taken.fits, free.fits)
    assert taken.question is not None
    assert (
        taken.question.place([(view, taken.question.fleet.assigned(id)) for id, view in log.fleet.nodes.items()])
        is None
    )
    assert [False, True] == [outcome == "it would go to a" for outcome in next_ones]


def test_a_new_revision_goes_where_room_was_kept_for_the_one_that_it_replaces() -> None:
    log = FleetLog()
    log.node("a", 5 * GIB)
    log.model("toy", simulated(4 * GIB), replicas=1)
    keep_room(log, ReplicaId("m-toy-1"), 4 * GIB)

    assert dry_run(log.fleet, "toy", simulated(2 * GIB), now=59.0).fits
    same = log.fleet.models[ModelId("m-toy")].spec
    assert not dry_run(log.fleet, "other", same, now=59.0).fits


def test_more_replicas_of_the_same_spec_keep_those_that_there_are() -> None:
    log = FleetLog()
    log.node("a", 5 * GIB)
    spec = simulated(GIB, 1)
    log.model("toy", spec, replicas=1, digest=_digest(spec))
    really_place(log)

    same, more = dry_run(log.fleet, "toy", spec), dry_run(log.fleet, "toy", simulated(GIB, 3))

    assert (1, 1, (), True) == (same.revision, same.staying, same.explanations, same.fits)
    assert (2, 1, 2, True) == (more.revision, more.staying, len(more.explanations), more.fits)
    assert [1, 3] == [same.wanted, more.wanted]


def test_without_an_answer_from_any_node_the_claim_is_unknown_and_says_so() -> None:
    log = FleetLog()
    log.add(node(log.node("a", GIB)), Draining(why="admin", deadline_s=1))

    run = dry_run(log.fleet, "toy", AT_PATH)

    assert not run.fits
    assert "no node's inspection has read the file's header" in run.explanations[0].outcome


def _digest(spec: ModelSpec) -> str:
    from weft_contracts.digest import revision_digest

    return revision_digest(spec)


def test_what_is_retired_or_evicted_neither_stays_nor_is_replaced() -> None:
    log = FleetLog()
    log.node("a", 5 * GIB)
    spec = simulated(GIB, 3)
    log.model("toy", spec, replicas=3, digest=_digest(spec))
    really_place(log)
    log.retire(ReplicaId("m-toy-1"))
    log.add(replica(ReplicaId("m-toy-2")), Evicted(why="room for another"))

    run = dry_run(log.fleet, "toy", spec)

    assert (3, 1, 2) == (run.wanted, run.staying, run.placed)


def test_the_replicas_of_a_dry_run_are_numbered_on_from_those_that_there_were() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    assert ["m-new-1", "m-new-2"] == [
        str(each.replica) for each in dry_run(log.fleet, "toy", simulated(GIB, 2)).explanations
    ]
    log.model("toy", simulated(GIB, 2), replicas=2)
    really_place(log)
    assert ["m-toy-3"] == [str(each.replica) for each in dry_run(log.fleet, "toy", simulated(2 * GIB)).explanations]


def test_a_model_that_may_have_no_replica_is_tried_with_one_unless_one_is_there() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    spec = simulated(GIB).model_copy(update={"min_replicas": 0})
    assert (1, 0, 1) == _counts(dry_run(log.fleet, "toy", spec))
    log.model("toy", spec, replicas=1, digest=_digest(spec))
    really_place(log)
    assert (1, 1, 0) == _counts(dry_run(log.fleet, "toy", spec))


def test_a_replica_with_another_selector_does_not_stay() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB, labels={"zone": "1"})
    spec = simulated(GIB)
    log.model("toy", spec, replicas=1, digest=_digest(spec))
    really_place(log)
    assert (1, 0, 1) == _counts(dry_run(log.fleet, "toy", spec.model_copy(update={"selector": {"zone": "1"}})))


def test_a_spec_is_a_revision_more_only_where_it_differs_from_the_newest() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.model("toy", simulated(GIB))
    assert (1, 2) == tuple(dry_run(log.fleet, "toy", simulated(size)).revision for size in (GIB, 2 * GIB))


def test_the_weights_are_those_that_most_nodes_found_and_no_node_counts_that_is_gone() -> None:
    other = WEIGHTS.model_copy(update={"fingerprint": "bb"})
    log = FleetLog()
    found = {name: WEIGHTS if name == "a" else other for name in "abcde"}
    for name, weights in found.items():
        log.add(machine(log.node(name, 4 * GIB)), FOUND.model_copy(update={"weights": weights}))
    assert other == dry_run(log.fleet, "toy", AT_PATH).spec.weights
    for name in "bcde":
        log.add(node(NodeId(f"n-{name}")), WentOffline(silent_for=9))
    assert WEIGHTS == dry_run(log.fleet, "toy", AT_PATH).spec.weights


def test_a_dry_run_goes_by_the_policy_that_the_spec_names_or_the_mesh_unless_one_is_given() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)

    def told(given: Policy | None = None, **more: object) -> str:
        spec = simulated(GIB).model_copy(update=more)
        return dry_run(log.fleet, "new", spec, given).explanations[0].policy

    assert BALANCED.text == told() == told(policy="gone")
    assert BINPACK.text == told(policy="binpack")
    assert SPREAD.text == told(strategy="spread")
    log.add(MESH, PolicySet(policy=PlacementPolicy(name="own", weights=PolicyWeights(files=1))))
    log.add(MESH, PolicyChosen(name="own"))
    assert told().startswith("name=own apart=zones idle=0.0 ")
    assert BINPACK.text == told(policy="binpack")
    assert Policy(snug=7.0).text == told(Policy(snug=7.0))
    log.add(MESH, PolicyWithdrawn(name="own"))
    assert BALANCED.text == told()


def test_a_dry_run_that_has_every_place_but_one_does_not_fit() -> None:
    log = FleetLog()
    log.node("a", 4 * GIB)
    fits = [dry_run(log.fleet, "toy", simulated(2 * GIB, count)).fits for count in (1, 2, 3)]
    assert [True, True, False] == fits


def _counts(run: DryRun) -> tuple[int, int, int]:
    return run.wanted, run.staying, run.placed


def test_a_dry_run_in_turns_says_what_one_at_once_says_whatever_happens_between_them() -> None:
    # given three nodes, and a dry run of three replicas on a copy of the fleet
    log = FleetLog()
    ids = [log.node(name, 4 * GIB) for name in "abc"]
    spec = simulated(GIB, replicas=3)
    at_once = dry_run(log.fleet, "toy", spec)
    turns = dry_run_in_turns(copied(log.fleet), "toy", spec, now=1.0)
    # when a node begins to drain in each turn
    for id in ids:
        next(turns)
        log.add(node(id), Draining(why="admin", deadline_s=60))
    # then what it comes to is as of its beginning
    with pytest.raises(StopIteration) as over:
        next(turns)
    assert at_once == over.value.value
    assert not dry_run(log.fleet, "toy", spec).fits


def test_a_dry_run_counts_what_nodes_found_by_what_they_read_of_tensors_too() -> None:
    # given three nodes of which two read the same headers
    log = FleetLog()
    mine, other = ({"BF16": GIB}, {"F32": 2 * GIB})
    for name, types in (("a", other), ("b", mine), ("c", mine)):
        weights = WEIGHTS.model_copy(update={"shape": ModelShape(whole=Cache(keys=50, values=50), tensor_bytes=types)})
        log.add(machine(log.node(name, 8 * GIB)), FOUND.model_copy(update={"weights": weights}))
    # then it is their word that counts
    found = dry_run(log.fleet, "m", AT_PATH).spec.weights.shape
    assert found is not None
    assert mine == found.tensor_bytes
