"""A replica over several nodes is decided whole: each of its nodes is told of all, in one batch with its place."""

import pytest
from weft_contracts.commit import Guard
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import EngineProfileSet, FormatRaised
from weft_contracts.facts.node import Assigned, Cordoned, Healthy, WentOffline
from weft_contracts.facts.replica import Placed, Restarted, Unplaceable
from weft_contracts.facts.run import Failed, Loading, Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Backend, Device, Hardware, ModelSpec, Weights
from weft_contracts.formats import READS, WORKERS_READ
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.subjects import MESH, machine, node, replica, run
from weft_placement import explain_decision
from weft_placement.verify import verify
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog
from weft_testing.hand_log import GuardLost

GIB = 1 << 30
ONE = ReplicaId("m-big-1")
GROUPS = BUILTIN["simulated"].model_copy(update={"name": "groups", "splits": ("devices", "nodes")})
"""An engine that runs over several nodes."""


def a_mesh(size: int, *nodes: str, engine: EngineProfile = GROUPS) -> FleetLog:
    """Nodes with two devices of 24 GiB each, and a model of so many GiB that wants a replica."""
    log = FleetLog()
    log.add(MESH, EngineProfileSet(profile=engine), *(FormatRaised(fact=f, version=v) for f, v in READS.items()))
    for name in nodes:
        id = log.node(name, 24 * GIB, 24 * GIB)
        cards = tuple(Device(index=index, vendor="nvidia", name="card", memory=24 * GIB) for index in (1, 2))
        backend = Backend(engine=engine.name, version="1", vendors=("nvidia",), profile=engine.digest)
        hardware = Hardware(cpus=1, memory=0, devices=cards)
        log.add(
            machine(id),
            Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1", reads=dict(WORKERS_READ)),
        )
    spec = ModelSpec(
        source=SimulatedSource(),
        engine=engine.name,
        engine_args={"memory_bytes": size * GIB},
        weights=Weights(format="none", heads=8),
    )
    log.model("big", spec, replicas=1)
    return log


def a_state(log: FleetLog) -> State:
    state = State()
    state.fold(log.commits)
    return state


def test_a_group_is_assigned_on_all_its_nodes_and_placed_in_one_batch() -> None:
    log = a_mesh(90, "a", "b", "c")
    (decision,) = decide(a_state(log), Rules(), 1.0, 7)
    assert {replica(ONE), node(NodeId("n-a")), node(NodeId("n-b"))} == {each.aggregate for each in decision.commits}
    for each in decision.commits:
        assert each.guard is not None
        assert each.aggregate == each.guard.aggregate
    log.take([decision])
    (placed,) = (fact for fact in log.facts() if isinstance(fact, Placed))
    assert placed.members == log.fleet.replicas[ONE].members
    assert [("n-a", 0), ("n-b", 1)] == [(member.node, member.rank) for member in placed.members]
    assigned = [fact for fact in log.facts() if isinstance(fact, Assigned)]
    assert [placed.members] * 2 == [fact.members for fact in assigned]
    assert [5, 5] == [fact.v for fact in assigned], "who knows of no ranks would run a whole replica"
    assert [member.node for member in placed.members] == [each.node for each in placed.receipt.candidates]
    held = {id: dict(log.fleet.assigned(NodeId(id)).claims) for id in ("n-a", "n-b", "n-c")}
    part = 90 * GIB // 4
    assert {"n-a": {1: part, 2: part}, "n-b": {1: part, 2: part}, "n-c": {}} == held
    told = explain_decision(log.commits, ONE)
    assert [("n-a", "several nodes", True), ("n-b", "several nodes", True)] == [
        (each.node, each.rung, each.chosen) for each in told.answers[:2]
    ]
    assert [] == decide(a_state(log), Rules(), 1.0, 7)


def test_a_group_one_of_whose_nodes_changed_meanwhile_is_not_there_at_all() -> None:
    log = a_mesh(90, "a", "b", "c")
    decisions = decide(a_state(log), Rules(), 1.0, 7)
    log.add(node(NodeId("n-b")), Cordoned())
    with pytest.raises(GuardLost):
        log.take(decisions)
    assert () == log.fleet.replicas[ONE].members
    (again,) = decide(a_state(log), Rules(), 1.0, 7)
    log.take([again])
    assert ["n-a", "n-c"] == [member.node for member in log.fleet.replicas[ONE].members]


@pytest.mark.parametrize(
    ("size", "engine", "expected"),
    [
        (100, GROUPS, "several nodes: it needs 100.00 GiB, devices of one vendor have 96.00 GiB in all"),
        (90, GROUPS.model_copy(update={"splits": ("devices",)}), "devices of one vendor that its heads divide by"),
    ],
    ids=["too large", "an engine of one node"],
)
def test_a_group_that_cannot_be_is_told_with_what_there_is(size: int, engine: EngineProfile, expected: str) -> None:
    log = a_mesh(size, "a", "b", engine=engine)
    (told,) = decide(a_state(log), Rules(), 1.0, 7)
    (commit,) = told.commits
    (fact,) = commit.facts
    assert isinstance(fact, Unplaceable)
    assert expected in fact.reason
    assert Guard(replica(ONE), 0) == commit.guard
    assert not any(isinstance(each, Placed) for each in commit.facts)


def running(log: FleetLog, *names: str) -> None:
    """All ranks answer, under the present epoch."""
    epoch = log.fleet.replicas[ONE].epoch
    for name in names:
        incarnation = Incarnation(f"{name}-{epoch}")
        log.add(run(NodeId(f"n-{name}"), ONE), Loading(epoch=epoch, incarnation=incarnation))
        ready = Ready(epoch=epoch, incarnation=incarnation, port=1, engine="groups", engine_version="1")
        log.add(run(NodeId(f"n-{name}"), ONE), ready)


def a_running_group() -> FleetLog:
    log = a_mesh(90, "a", "b", "c")
    log.take(decide(a_state(log), Rules(), 1.0, 7))
    running(log, "a", "b")
    assert "ready" == log.fleet.replicas[ONE].state
    return log


def died(log: FleetLog, name: str) -> None:
    log.add(run(NodeId(f"n-{name}"), ONE), Stopped(epoch=log.fleet.replicas[ONE].epoch, why="exited", detail="killed"))


def test_when_a_rank_ends_all_of_them_start_again_under_the_next_epoch_where_they_are() -> None:
    log = a_running_group()
    before = log.fleet.replicas[ONE]
    died(log, "b")
    (decision,) = decide(a_state(log), Rules(), 2.0, 8)
    assert {replica(ONE), node(NodeId("n-a")), node(NodeId("n-b"))} == {each.aggregate for each in decision.commits}
    assert all(each.guard is not None for each in decision.commits)
    log.take([decision])
    after = log.fleet.replicas[ONE]
    assert (2, before.members) == (after.epoch, after.members)
    assert [2, 2] == [fact.epoch for fact in log.facts() if isinstance(fact, Assigned)][-2:]
    (restarted,) = (fact for fact in log.facts() if isinstance(fact, Restarted))
    assert "rank 1 on b ended: killed" == restarted.why
    # and that is said once, and what was claimed is claimed still
    assert [] == decide(a_state(log), Rules(), 3.0, 9)
    assert {1, 2} == log.fleet.assigned(NodeId("n-a")).claims.keys()
    running(log, "a", "b")
    assert "ready" == log.fleet.replicas[ONE].state
    assert 1 == verify(log.commits).decisions["placed"]
    assert [] == verify(log.commits).mismatches


def test_two_schedulers_that_see_a_rank_end_start_the_group_once() -> None:
    log = a_running_group()
    died(log, "a")
    one, other = decide(a_state(log), Rules(), 2.0, 8), decide(a_state(log), Rules(), 2.0, 9)
    log.take(one)
    with pytest.raises(GuardLost):
        log.take(other)
    assert 2 == log.fleet.replicas[ONE].epoch


def test_a_group_with_a_rank_that_failed_for_good_or_whose_node_is_silent_does_not_start_again() -> None:
    log = a_running_group()
    died(log, "a")
    log.add(node(NodeId("n-b")), WentOffline(silent_for=9.0))
    assert [] == decide(a_state(log), Rules(), 2.0, 8)
    log.add(node(NodeId("n-b")), Healthy())
    assert ["restarted"] == [each.why for each in decide(a_state(log), Rules(), 2.0, 8)]
    log.add(run(NodeId("n-b"), ONE), Failed(epoch=1, reason="bad", permanent=True, starts=1))
    assert [] == decide(a_state(log), Rules(), 2.0, 8)


def test_a_group_that_is_not_wanted_any_more_ends_and_starts_nowhere() -> None:
    log = a_running_group()
    died(log, "a")
    log.retire(ONE)
    assert ["retired"] == [each.why for each in decide(a_state(log), Rules(), 2.0, 8)]


def test_a_word_of_an_earlier_epoch_makes_no_rank_ready() -> None:
    log = a_running_group()
    died(log, "b")
    log.take(decide(a_state(log), Rules(), 2.0, 8))
    running(log, "b")
    late = Ready(epoch=1, incarnation=Incarnation("a-1"), port=1, engine="groups", engine_version="1")
    log.add(run(NodeId("n-a"), ONE), late)
    assert "loading" == log.fleet.replicas[ONE].state
