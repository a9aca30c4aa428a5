"""Nodes that are found by an order of the index come as if each had been looked at."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, ModelSpec
from weft_contracts.ids import NodeId, ReplicaId
from weft_placement import BALANCED, BINPACK, SPREAD, Policy, best_first
from weft_placement.best_first import BestFirst
from weft_placement.crowd_members import CrowdMembers, CrowdRest
from weft_placement.crowd_walk import CrowdWalk
from weft_placement.decide import demand_for
from weft_placement.demand import Demand
from weft_placement.estimate import Estimate
from weft_placement.layout import Level
from weft_placement.level_scores import SLACK, LevelScores
from weft_placement.node_evaluator import Candidate, NodeEvaluator
from weft_placement.node_record import Crowd, NodeClass, NodeRecord
from weft_testing.fleet_log import FleetLog

CLAIM = 10_000_000
FREE = st.sampled_from([0, 9_999_999, CLAIM, CLAIM + 4, CLAIM + 40, CLAIM + 900, 12_000_000, 20_000_000])
"""Of some the scores are alike, of some only once they are rounded."""
HOSTS = st.sampled_from([5_000_000, 5_000_001, 9_000_000])
NODES = st.lists(st.tuples(st.tuples(FREE, FREE, FREE), HOSTS, st.booleans()), min_size=1, max_size=14)
CROWDS = st.lists(st.tuples(st.integers(0, 2), NODES), min_size=1, max_size=3)
POLICIES = st.sampled_from(
    [BALANCED, BINPACK, SPREAD, Policy("files", binpack=1.0, idle=0.0, files=0.1), Policy("m", binpack=1, spread=1)]
)


def demanded(policy: Policy) -> Demand:
    log = FleetLog()
    log.model(
        "toy", ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": CLAIM}), replicas=1
    )
    return demand_for(log.fleet, log.fleet.replicas[ReplicaId("m-toy-1")], policy)


def scored(policy: Policy, level: Level, replicas: int, beside: int) -> LevelScores:
    """How the nodes of a crowd with so many replicas each score."""
    demand = demanded(policy)
    weights = NodeEvaluator(demand, policy).weights
    devices = tuple(DeviceClaim(index=1 + number, bytes=level.claim) for number in range(level.devices))
    host = DeviceClaim(index=0, bytes=beside) if beside else None
    sample = Candidate(NodeId("n"), level.rung, devices, 0.5, {name: 0.25 for name, _ in weights}, (), host)
    return LevelScores(weights, sample, level, replicas, demand)


@settings(max_examples=150, deadline=None)
@example(  # the second has a byte less beside its devices, and the same score
    crowds=[(0, [((CLAIM, CLAIM, CLAIM), 5_000_001, False), ((CLAIM, CLAIM, CLAIM), 5_000_000, False)])],
    policy=BINPACK,
    devices=1,
    claim=CLAIM,
    beside=1_000,
    few=1,
)
@given(
    crowds=CROWDS,
    policy=POLICIES,
    devices=st.integers(1, 3),
    claim=st.sampled_from([0, CLAIM, CLAIM, CLAIM]),
    beside=st.sampled_from([0, 0, 1_000, 1_000_000]),
    few=st.integers(1, 6),
)
def test_the_best_come_first_as_if_each_was_looked_at(
    crowds: list[tuple[int, list[tuple[tuple[int, int, int], int, bool]]]],
    policy: Policy,
    devices: int,
    claim: int,
    beside: int,
    few: int,
):
    # given crowds of which some nodes were asked themselves
    level, number = Level(1 if devices > 1 else 0, devices, claim, claim), 0
    quick, plain = BestFirst(), BestFirst()
    for replicas, nodes in crowds:
        members, left_out = CrowdMembers(), set[NodeId]()
        for free, host, out in nodes:
            number += 7
            id = NodeId(f"n-{number % 97:02}")
            members.put(record(id, replicas, free, host))
            if out:
                left_out.add(id)
        rest = CrowdRest(members, left_out)
        scores = scored(policy, level, replicas, beside)
        holding = level.held_by(rest)
        if not holding:
            continue
        plain.estimates.append(Estimate(scores, holding))
        order = scores.order
        if order is None:
            quick.estimates.append(Estimate(scores, holding))
            continue
        # when they are walked, then what comes later scores no more than was said
        walk = CrowdWalk(scores, order, rest)
        quick.walks.append(walk)
        runs = list(walk.runs(few))
        assert all(one.bound >= other.bound >= other.figure for one, other in pairwise(runs))
        assert runs[0].bound >= runs[0].figure
        for run in runs:
            assert SLACK / 3 > abs(run.figure - scores.score(run.key))
    # and all come in order
    expected = sorted(each for one in plain.estimates for each in one.all())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_first, "AT_FIRST", few)
        if expected:
            assert expected == list(quick.entries())
            assert expected == list(plain.entries())


def record(id: NodeId, replicas: int, free: Sequence[int], host: int) -> NodeRecord:
    """A node's own figures."""
    kept = tuple(sorted(free))
    return NodeRecord(
        id=id,
        crowd=Crowd(NodeClass(), "", replicas),
        free=kept,
        most=kept[-1],
        host=host,
        host_total=64_000_000,
        budgeted=(False, False),
        disk=None,
        install_disk=None,
    )
