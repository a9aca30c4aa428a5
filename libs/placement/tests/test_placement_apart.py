"""Replicas of one model go to different nodes while there are any that fit; then the scores decide as before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.model import Scaled
from weft_contracts.facts.node import Assigned, Unassigned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId, replica_id
from weft_contracts.subjects import model, node, replica
from weft_placement import (
    BUILTIN_POLICIES,
    CandidateRanking,
    Placement,
    PlannedFleet,
    Policy,
    decide_placement,
    parse_policy,
)
from weft_placement.decide import demand_for
from weft_placement.dry_run import dry_run
from weft_placement.explain import explain_decision
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
OLD = "idle=0.5 pack=1.0 files=0.5 devices=0.25 slots=64"
"""A policy as receipts name it that were written before replicas were set apart."""


def spec(size: int = GIB, **more: object) -> ModelSpec:
    given = {"source": SimulatedSource(), "engine": "simulated", "engine_args": {"memory_bytes": size}, **more}
    return ModelSpec.model_validate(given)


def place(log: FleetLog, id: ReplicaId, policy: Policy | None = None) -> str:
    """Place a waiting replica; the name of its node."""
    found = decide_placement(log.fleet, id, policy or Policy(), now=1.0, seed=0)
    assert isinstance(found, Placement), found
    view = log.fleet.replicas[id]
    body = {"model": view.model, "revision": view.revision, "epoch": view.epoch + 1, "members": found.members}
    log.add(replica(id), Placed.model_validate(body | {"receipt": found.receipt}))
    where = found.members[0].node
    digest, its = log.fleet.spec_of(view)
    more = {"replica": id, "model_name": "m", "digest": digest, "spec": its}
    log.add(node(where), Assigned.model_validate(body | more))
    return log.fleet.nodes[where].name


def place_all(log: FleetLog, policy: Policy | None = None) -> list[str]:
    return [place(log, id, policy) for id in tuple(log.fleet.waiting)]


def three_nodes() -> FleetLog:
    log = FleetLog()
    for name in ("a", "b", "c"):
        log.node(name, 8 * GIB, 8 * GIB)
    return log


@pytest.mark.parametrize("strategy", ["binpack", "spread"])
def test_three_replicas_on_three_idle_nodes_are_on_each_of_them(strategy: str) -> None:
    log = three_nodes()
    log.model("m", spec(strategy=strategy), replicas=3)
    assert ["a", "b", "c"] == sorted(place_all(log))


def test_where_each_node_has_one_the_scores_decide_as_before() -> None:
    log = three_nodes()
    log.node("d", 3 * GIB)
    log.model("m", spec(2 * GIB), replicas=4)
    assert ["a", "b", "c", "d"] == sorted(place_all(log))
    id = log.model("other", spec(4 * GIB), replicas=1)
    busy = place(log, replica_id(id, 1))

    log.scale(ModelId("m-m"), 1)
    (fifth,) = place_all(log)

    assert fifth not in (busy, "d")  # of those that hold it one that does less


def test_a_full_node_is_no_reason_to_wait() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.node("b", GIB // 2)
    log.model("m", spec(), replicas=2)
    assert ["a", "a"] == place_all(log)


def test_a_rollout_ends_with_its_replicas_apart() -> None:
    log = three_nodes()
    id = log.model("m", spec(), replicas=2)
    place_all(log)
    log.model("m", spec(concurrency=2))
    new: list[str] = []
    for number in (1, 2):
        log.scale(id, 1)
        new += place_all(log)
        # the old one's process takes its time to end, and holds its memory until it has
        old = log.fleet.replicas[replica_id(id, number)]
        log.retire(old.id)
        log.add(node(old.members[0].node), Unassigned(replica=old.id, deadline_s=30, why="retired"))

    assert 2 == len(set(new))


@pytest.mark.parametrize(("policy", "together"), [("balanced", False), ("binpack", True), ("spread", False)])
def test_another_models_first_replica_goes_to_an_idle_node_unless_the_policy_packs(policy: str, together: bool) -> None:
    log = three_nodes()
    log.model("m", spec(), replicas=1)
    log.model("n", spec(), replicas=1)
    one, other = place_all(log, BUILTIN_POLICIES[policy])
    assert together == (one == other)


def test_a_small_model_goes_to_the_smallest_of_idle_nodes_that_hold_it() -> None:
    log = FleetLog()
    log.node("large", 80 * GIB)
    log.node("small", 24 * GIB)
    log.model("m", spec(5 * GIB), replicas=1)
    assert ["small"] == place_all(log)


def test_a_begun_device_of_a_node_is_filled_before_another_is_begun_and_a_model_keeps_apart_on_devices_too() -> None:
    # given a node of three devices, one of them begun by another model
    log = FleetLog()
    log.node("a", 8 * GIB, 8 * GIB, 8 * GIB)
    log.model("other", spec(), replicas=1)
    place_all(log)
    # when a model has three replicas there
    id = log.model("m", spec(), replicas=3)
    place_all(log)
    # then the first fills what is begun, and each further has a device of its own
    held = [log.fleet.replicas[replica_id(id, number)].members[0].devices[0].index for number in (1, 2, 3)]
    begun = log.fleet.replicas[replica_id(ModelId("m-other"), 1)].members[0].devices[0].index
    assert begun == held[0]
    assert 3 == len(set(held))


def zoned(*zones: str) -> FleetLog:
    """Nodes a, b, c … in these zones; an empty name: in none."""
    log = FleetLog()
    for name, zone in zip("abcdefgh", zones, strict=False):
        log.node(name, 8 * GIB, labels={"zone": zone} if zone else {})
    return log


def zones_of(log: FleetLog, names: list[str]) -> list[str]:
    return [log.fleet.nodes[NodeId(f"n-{name}")].labels.get("zone", "") for name in names]


def test_replicas_of_one_model_go_to_different_zones_before_scores_count() -> None:
    log = zoned("east", "east", "east", "west", "north")
    log.model("m", spec(), replicas=3)
    assert ["east", "north", "west"] == sorted(zones_of(log, place_all(log)))


def test_nodes_come_before_zones_and_each_zone_gets_its_share() -> None:
    # given two zones, of three nodes and of one
    log = zoned("east", "east", "east", "west")
    log.model("m", spec(), replicas=4)
    # then nobody shares a node though the zone of one has fewer
    assert ["a", "b", "c", "d"] == sorted(place_all(log))


def test_a_replica_that_leaves_makes_its_zone_free_again() -> None:
    log = zoned("east", "east", "west", "west")
    id = log.model("m", spec(), replicas=2)
    first, _ = place_all(log)
    log.retire(replica_id(id, 1))
    log.add(node(NodeId(f"n-{first}")), Unassigned(replica=replica_id(id, 1), deadline_s=1, why="test"))
    log.scale(id, 1)
    (third,) = place_all(log)
    assert zones_of(log, [first]) == zones_of(log, [third])


def test_a_receipt_says_how_near_others_of_its_zone_are_and_nothing_where_there_are_no_zones() -> None:
    log = zoned("east", "east", "")
    id = log.model("m", spec(), replicas=1)
    place_all(log)
    log.scale(id, 1)
    found = decide_placement(log.fleet, replica_id(id, 2), Policy(), now=1.0, seed=0)
    assert isinstance(found, Placement)
    told = {each.node: each.scores.get("zone") for each in found.receipt.candidates}
    assert {NodeId("n-a"): 0.5, NodeId("n-b"): 0.5, NodeId("n-c"): None} == told


@given(
    zones=st.lists(st.sampled_from(["east", "west", "north"]), min_size=1, max_size=8),
    steps=st.lists(st.booleans(), max_size=16),
)
@settings(max_examples=60, deadline=None)
def test_a_kept_ranking_knows_the_zones_as_a_new_one_does(zones: list[str], steps: list[bool]) -> None:
    log = zoned(*zones)
    id = log.model("m", spec(GIB // 4))
    kept: CandidateRanking | None = None
    for goes in steps:
        there = [view for view in log.fleet.replicas.values() if view.wanted and view.members]
        if goes and there:
            log.retire(there[0].id)
            log.add(node(there[0].members[0].node), Unassigned(replica=there[0].id, deadline_s=1, why="test"))
        else:
            log.scale(id, 1)
            place_all(log)
        replica = next(iter(log.fleet.replicas.values()))
        new = CandidateRanking(demand_for(log.fleet, replica, Policy()), Policy())
        kept = kept or CandidateRanking(demand_for(log.fleet, replica, Policy()), Policy())
        for each in (kept, new):
            each.sync(PlannedFleet(log.fleet))
        assert list(new.candidates()) == list(kept.candidates())


def test_an_explanation_and_a_dry_run_tell_what_came_before_the_scores() -> None:
    log = three_nodes()
    id = log.model("m", spec(), replicas=2)
    first, second = place_all(log)

    told = explain_decision(log.commits, replica_id(id, 2))
    figures = {answer.name: (answer.scores or {})["apart"] for answer in told.answers}
    assert (second, 0.5, 1.0) == (told.answers[0].name, figures.pop(first), figures.pop(second))
    assert told.policy.startswith("name=balanced apart=zones ")
    tried = dry_run(log.fleet, "new", spec(min_replicas=3))
    assert 3 == len({answer.name for each in tried.explanations for answer in each.answers if answer.chosen})


def test_a_decision_of_before_is_explained_by_the_policy_that_it_was_made_under() -> None:
    log = three_nodes()
    id = log.model("m", spec(), replicas=2)
    first, second = place_all(log, parse_policy(OLD))
    assert first == second

    told = explain_decision(log.commits, replica_id(id, 2))

    assert (second, True) == (told.answers[0].name, told.answers[0].chosen)
    assert "apart" not in (told.answers[0].scores or {})


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    steps=st.lists(st.tuples(st.sampled_from("mn"), st.booleans()), max_size=24),
)
@settings(max_examples=80, deadline=None)
def test_no_two_share_a_node_while_another_could_take_one(sizes: list[int], steps: list[tuple[str, bool]]) -> None:
    log = FleetLog()
    nodes = [log.node(f"w{index}", size * GIB) for index, size in enumerate(sizes)]
    for name in "mn":
        log.model(name, spec())
    for name, goes in steps:
        id = ModelId(f"m-{name}")
        there = [view for view in log.fleet.replicas.values() if view.model == id and view.wanted]
        if goes and there:
            gone = there[0]
            log.add(model(id), Scaled(revision=1, retire=(gone.id,), why="test"))
            log.add(node(gone.members[0].node), Unassigned(replica=gone.id, deadline_s=1, why="test"))
            continue
        log.scale(id, 1)
        waiting = next(iter(log.fleet.waiting))
        found = decide_placement(log.fleet, waiting, Policy(), now=1.0, seed=0)
        if not isinstance(found, Placement):
            log.retire(waiting)
            continue
        taken = {view.members[0].node for view in there}
        fits = {NodeId(each.node) for each in found.receipt.candidates}
        place(log, waiting)
        if found.members[0].node in taken:
            assert fits <= taken, f"{sorted(fits - taken)} of {nodes} had none"
