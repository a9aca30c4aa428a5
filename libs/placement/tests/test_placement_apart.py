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
from weft_placement import Placement, Policy, decide_placement, parse_policy
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
    packed = place(log, replica_id(id, 1))

    log.scale(ModelId("m-m"), 1)
    (fifth,) = place_all(log)

    assert packed == fifth  # the fullest of those that hold it


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


def test_other_models_are_no_reason_to_go_elsewhere() -> None:
    log = three_nodes()
    log.model("m", spec(), replicas=1)
    log.model("n", spec(), replicas=1)
    one, other = place_all(log)
    assert one == other


def test_an_explanation_and_a_dry_run_tell_what_came_before_the_scores() -> None:
    log = three_nodes()
    id = log.model("m", spec(), replicas=2)
    first, second = place_all(log)

    told = explain_decision(log.commits, replica_id(id, 2))
    figures = {answer.name: (answer.scores or {})["apart"] for answer in told.answers}
    assert (second, 0.5, 1.0) == (told.answers[0].name, figures.pop(first), figures.pop(second))
    assert told.policy.startswith("apart=nodes ")
    scores = {answer.name: answer.score for answer in told.answers}
    assert scores[first] > scores[second]

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
