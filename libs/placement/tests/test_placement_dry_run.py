"""A dry run of a deploy: the same answers that the scheduler would give, and nothing changes."""

from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.node import Assigned, Draining, WentOffline
from weft_contracts.facts.replica import Evicted, Placed
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_contracts.ids import InspectionId, NodeId, ReplicaId
from weft_contracts.subjects import machine, node, replica
from weft_placement import DryRun, Placement, Policy, decide_placement, dry_run
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


def test_a_dry_run_goes_by_the_policy_of_the_last_decision_unless_one_is_given() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.model("toy", simulated(GIB), replicas=2)
    assert Policy().text == dry_run(log.fleet, "new", simulated(GIB)).explanations[0].policy
    for number, policy in ((2, Policy(pack=3.0)), (1, Policy(pack=5.0))):
        id = ReplicaId(f"m-toy-{number}")
        outcome = decide_placement(log.fleet, id, policy, now=1.0, seed=0)
        assert isinstance(outcome, Placement)
        body = {"model": "m-toy", "revision": 1, "epoch": 1, "members": outcome.members, "receipt": outcome.receipt}
        log.add(replica(id), Placed.model_validate(body))

    assert Policy(pack=5.0).text == dry_run(log.fleet, "new", simulated(GIB)).explanations[0].policy
    given = dry_run(log.fleet, "new", simulated(GIB), Policy(pack=7.0))
    assert Policy(pack=7.0).text == given.explanations[0].policy


def test_a_dry_run_that_has_every_place_but_one_does_not_fit() -> None:
    log = FleetLog()
    log.node("a", 4 * GIB)
    fits = [dry_run(log.fleet, "toy", simulated(2 * GIB, count)).fits for count in (1, 2, 3)]
    assert [True, True, False] == fits


def _counts(run: DryRun) -> tuple[int, int, int]:
    return run.wanted, run.staying, run.placed
