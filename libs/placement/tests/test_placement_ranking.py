"""A ranking that only evaluates what changed answers as one that evaluates every node."""

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.node import Cordoned, Healthy, Labelled, Removed, Uncordoned, Unhealthy
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import machine, node
from weft_placement import CandidateRanking, Circumstances, PlannedFleet, Policy, choose, decide_placement
from weft_placement.decide import demand_for
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
POLICY = Policy()
NODES = [NodeId(f"n-{letter}") for letter in "abcd"]
FACTS: list[Fact] = [
    Healthy(),
    Unhealthy(silent_for=5),
    Cordoned(),
    Uncordoned(),
    Labelled(labels={"zone": "1"}),
    Labelled(labels={"zone": None}),
    PressureChanged(device=0, bytes=7 * GIB),
    PressureChanged(device=0, bytes=0),
    Removed(why="sold"),
]
STEPS = st.lists(st.tuples(st.sampled_from(NODES), st.one_of(st.sampled_from(FACTS), st.integers(1, 4))), max_size=12)


def a_log(strategy: str) -> FleetLog:
    log = FleetLog()
    for index, id in enumerate(NODES):
        log.node(id[2:], *[(8 + index) * GIB] * 2)
    given = {"source": SimulatedSource(), "engine": "simulated", "strategy": strategy}
    spec = ModelSpec.model_validate({**given, "engine_args": {"memory_bytes": 3 * GIB}, "selector": {"!zone": ""}})
    log.model("toy", spec, replicas=20)
    return log


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, strategy=st.sampled_from(["binpack", "spread"]))
def test_a_board_in_step_with_the_log_decides_as_a_new_one(steps: list[tuple[NodeId, Fact | int]], strategy: str):
    log = a_log(strategy)
    replica = log.fleet.replicas[ReplicaId("m-toy-20")]
    ranking = CandidateRanking(demand_for(log.fleet, replica, POLICY), POLICY)
    planned_fleet = PlannedFleet(log.fleet)
    ranking.sync(planned_fleet)
    for number, (id, step) in enumerate(steps, start=1):
        if isinstance(step, int):
            planned = log.fleet.replicas[ReplicaId(f"m-toy-{number}")]
            claim = DeviceClaim(index=step % 2, bytes=step * GIB)
            planned_fleet.plan(planned, (Member(node=id, rank=0, devices=(claim,)),), planned.cause)
            ranking.sync(planned_fleet)
        else:
            aggregate = machine(id) if isinstance(step, PressureChanged) else node(id)
            log.add(aggregate, step)
            planned_fleet = PlannedFleet(log.fleet)  # what was planned did not come to be
            ranking.sync(planned_fleet)
    ranking.sync(PlannedFleet(log.fleet))
    expected = decide_placement(log.fleet, replica.id, POLICY, now=2.0, seed=3)
    assert expected == choose(log.fleet, replica, ranking, Circumstances(2.0, 3))


def test_a_decision_is_the_same_twice():
    one, other = a_log("spread"), a_log("spread")
    replica = ReplicaId("m-toy-1")
    first = decide_placement(one.fleet, replica, POLICY, now=1.0, seed=1)
    assert first == decide_placement(other.fleet, replica, POLICY, now=1.0, seed=1)
