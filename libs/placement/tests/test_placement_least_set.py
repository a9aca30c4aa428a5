"""Of all that might end, the least set that makes room: held against every set there is."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId, model_of
from weft_contracts.subjects import node
from weft_fleet import NodeAssignments, NodeView, ReplicaView
from weft_placement import BALANCED, CandidateRanking, PlannedFleet
from weft_placement.decide import demand_for
from weft_placement.eviction import Endable, least_set
from weft_placement.eviction.sets import longest_idle_first
from weft_placement.group import Group
from weft_placement.node_evaluator import Evaluation, NodeEvaluator
from weft_placement.passed_over import no_candidate
from weft_testing.fleet_log import FleetLog

from .test_placement_groups import a_fleet
from .test_placement_groups import demand_for as demand_of_group

GIB = 1 << 30
WAITING = ReplicaId("m-new-1")
HELD = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.sampled_from("xyz"), st.integers(1, 4), st.integers(1, 3)),
    max_size=7,
)
"""By node, device, model, size, and how long it is idle."""


def spec(size: int) -> ModelSpec:
    given = {"source": SimulatedSource(), "engine": "simulated", "engine_args": {"memory_bytes": size * GIB}}
    return ModelSpec.model_validate(given)


def a_mesh(held: list[tuple[str, int, str, int, int]], needed: int) -> tuple[FleetLog, list[Endable]]:
    log = FleetLog()
    for name in "ab":
        log.node(name, 4 * GIB, 5 * GIB)
    for name in "xyz":
        log.model(name, spec(1))
    log.model("new", spec(needed), replicas=1)
    endable: list[Endable] = []
    for where, device, of, size, idle in held:
        if log.fleet.claims(NodeId(f"n-{where}")).get(device, 0) + size * GIB > (4 + device) * GIB:
            continue
        id, model = NodeId(f"n-{where}"), log.fleet.models[ModelId(f"m-{of}")]
        replica = ReplicaId(f"{model.id}-{model.next_number}")
        log.scale(model.id, 1)
        member = Member(node=id, rank=0, devices=(DeviceClaim(index=device, bytes=size * GIB),))
        assigned = Assigned(
            replica=replica,
            model=model.id,
            model_name=of,
            revision=1,
            digest="d",
            epoch=1,
            members=(member,),
            spec=spec(1),
        )
        log.add(node(id), assigned)
        view = log.fleet.replicas[replica]
        endable.append(Endable(with_members(view, member), float(idle), ""))
    return log, endable


def with_members(view: ReplicaView, member: Member) -> ReplicaView:
    return ReplicaView(view.id, view.model, view.revision, view.number, view.digest, view.cause, members=(member,))


def held_for_a_group(
    nodes: int, held: Sequence[tuple[str, int, int, float]] = (("a", 0, 4, 9.0), ("b", 0, 4, 5.0), ("a", 1, 1, 99.0))
) -> tuple[FleetLog, list[Endable]]:
    """Nodes of two devices of 24 GiB, and what is held there: by node, device, GiB, and how long it is idle."""
    log = a_fleet(*[(2, 24)] * nodes)
    endable: list[Endable] = []
    for number, (where, device, size, idle) in enumerate(held, start=1):
        log.model(f"old{number}", spec(1), replicas=1)
        view = log.fleet.replicas[ReplicaId(f"m-old{number}-1")]
        claim = DeviceClaim(index=device, bytes=size * GIB)
        member = Member(node=NodeId(f"n-{where}"), rank=0, devices=(claim,))
        assigned = Assigned(
            replica=view.id,
            model=view.model,
            model_name=f"old{number}",
            revision=1,
            digest="d",
            epoch=1,
            members=(member,),
            spec=spec(1),
        )
        log.add(node(member.node), assigned)
        endable.append(Endable(with_members(view, member), idle, ""))
    return log, endable


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[NodeId]:
    """Each node that is evaluated from now on."""
    looks: list[NodeId] = []
    evaluate = NodeEvaluator.evaluate

    def counted(self: NodeEvaluator, node: NodeView, assigned: NodeAssignments) -> Evaluation:
        looks.append(node.id)
        return evaluate(self, node, assigned)

    monkeypatch.setattr(NodeEvaluator, "evaluate", counted)
    return looks


def makes_room(log: FleetLog, ends: tuple[Endable, ...]) -> bool:
    planned, waiting = PlannedFleet(log.fleet), log.fleet.replicas[WAITING]
    for each in ends:
        planned.release(each.replica)
    ranking = CandidateRanking(demand_for(log.fleet, waiting, BALANCED), BALANCED)
    ranking.sync(planned)
    return ranking.best() is not None


def within(ends: tuple[tuple[int, str], ...], spare: dict[str, int]) -> bool:
    return all(number <= spare.get(kind, 0) for kind, number in Counter(kind for _, kind in ends).items())


def order(ends: tuple[Endable, ...]) -> tuple[int, list[tuple[float, str]]]:
    return len(ends), sorted((each.rank for each in ends), reverse=True)


@settings(max_examples=120, deadline=None)
@given(held=HELD, needed=st.integers(1, 6), spare=st.integers(1, 3))
def test_it_is_the_least_of_all_sets_that_make_room(
    held: list[tuple[str, int, str, int, int]], needed: int, spare: int
) -> None:
    log, endable = a_mesh(held, needed)
    if makes_room(log, ()):
        return
    allowed = {ModelId(f"m-{name}"): spare for name in "xyz"}
    every = chain.from_iterable(combinations(endable, count) for count in range(1, len(endable) + 1))
    within = [s for s in every if max(Counter(model_of(e.replica.id) for e in s).values()) <= spare]
    expected = min((order(ends) for ends in within if makes_room(log, ends)), default=None)
    demand = demand_for(log.fleet, log.fleet.replicas[WAITING], BALANCED)
    found = least_set(PlannedFleet(log.fleet), demand, BALANCED, endable, allowed)
    assert expected == (None if found is None else order(found.ends))
    if found is not None:
        assert ["n-a", "n-b"].count(found.members[0].node) == 1


def test_sets_come_in_the_order_in_which_their_least_idle_one_comes() -> None:
    each_once = dict.fromkeys("abcd", 1)
    assert ["ab", "ac", "bc", "ad", "bd", "cd"] == ["".join(s) for s in longest_idle_first("abcd", 2, str, each_once)]


@given(kinds=st.text("xyz", max_size=7), spare=st.dictionaries(st.sampled_from("xyz"), st.integers(0, 3)))
def test_the_sets_are_those_that_may_end_together_and_in_the_order_of_all(kinds: str, spare: dict[str, int]) -> None:
    ranked = list(enumerate(kinds))
    for count in range(len(ranked) + 1):
        every = [s for s in combinations(ranked, count) if within(s, spare)]
        made = list(longest_idle_first(ranked, count, lambda each: each[1], spare))
        assert sorted(every, key=lambda ends: ends[::-1]) == made


def test_sets_above_what_a_model_has_to_spare_are_never_made() -> None:
    # given so many of one model that to make all their sets would never end
    asked: list[int] = []

    def kind_of(each: int) -> str:
        asked.append(each)
        return "m"

    assert [] == list(longest_idle_first(range(200), 100, kind_of, {"m": 99}))
    assert [(each,) for each in range(200)] == list(longest_idle_first(range(200), 1, kind_of, {"m": 1}))
    assert 400 == len(asked)


@pytest.mark.parametrize("needed", [2, 5])
def test_what_is_looked_at_is_bounded_by_what_each_model_has_to_spare(
    monkeypatch: pytest.MonkeyPatch, needed: int
) -> None:
    # given a device that one model fills, which may have one replica fewer, beside one that is full
    looks = count_looks(monkeypatch)
    log, (_, *endable) = a_mesh([("b", 0, "y", 4, 1), *[("b", 1, "x", 1, 1)] * 5], needed)
    demand = demand_for(log.fleet, log.fleet.replicas[WAITING], BALANCED)
    assert None is least_set(PlannedFleet(log.fleet), demand, BALANCED, endable, {ModelId("m-x"): 1}, {"n-a"})
    # then the node is asked once without all of them, and once without each
    assert 6 == len(looks)


def test_where_there_are_too_many_sets_nothing_of_what_ends_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft_placement.eviction.search.LOOKS", 3)
    log, endable = a_mesh([("a", 1, "x", 1, 3), ("a", 1, "y", 2, 2), ("a", 1, "z", 2, 1), ("a", 0, "x", 4, 1)], 5)
    allowed = {ModelId(f"m-{name}"): 3 for name in "xyz"}
    demand = demand_for(log.fleet, log.fleet.replicas[WAITING], BALANCED)
    found = least_set(PlannedFleet(log.fleet), demand, BALANCED, endable, allowed, {"n-b"})
    assert found is not None
    assert 3 == len(found.ends)
    assert makes_room(log, found.ends)


def test_for_a_replica_over_several_nodes_each_node_is_evaluated_once_and_again_only_where_something_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given eight nodes, on two of which something may end
    log, endable = held_for_a_group(8)
    demand, planned = demand_of_group(log, 340), PlannedFleet(log.fleet)
    allowed = {each.replica.model: 1 for each in endable}
    ranking = CandidateRanking(demand, BALANCED)
    ranking.sync(planned)
    told, changes = (ranking.best(), no_candidate(ranking)), ranking.changes
    looks = count_looks(monkeypatch)
    anew = least_set(planned, demand, BALANCED, endable, allowed)
    many = Counter(looks)
    looks.clear()
    found = least_set(planned, demand, BALANCED, endable, allowed, (), ranking)
    # then a search of its own asks each of the others once, and one from a ranking none of them
    assert anew is not None
    assert anew == found
    assert {1} == {many[NodeId(f"n-{letter}")] for letter in "cdefgh"}
    assert {"n-a", "n-b"} == set(looks)
    # and the ranking is as it was
    assert (told, changes) == ((ranking.best(), no_candidate(ranking)), ranking.changes)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, 20)), max_size=6),
    needed=st.integers(40, 220),
)
def test_a_search_from_a_ranking_finds_what_one_of_its_own_finds(
    sizes: list[tuple[int, int, int]], needed: int
) -> None:
    log, endable = held_for_a_group(4, [("abcd"[n], device, size, float(size)) for n, device, size in sizes])
    demand, planned = demand_of_group(log, needed), PlannedFleet(log.fleet)
    ranking = CandidateRanking(demand, BALANCED)
    ranking.sync(planned)
    allowed = {each.replica.model: 1 for each in endable}
    found = least_set(planned, demand, BALANCED, endable, allowed, (), ranking)
    if ranking.best() is not None:
        return
    assert found == least_set(planned, demand, BALANCED, endable, allowed)
    # and nothing of it can be left out
    ends = () if found is None or len(found.members) < 2 else found.ends
    for left_out in ends:
        fewer = PlannedFleet(log.fleet)
        for each in ends:
            if each is not left_out:
                fewer.release(each.replica)
        again = CandidateRanking(demand, BALANCED)
        again.sync(fewer)
        assert not isinstance(again.best(), Group)


def test_for_a_replica_over_several_nodes_those_end_that_can_not_be_left_out() -> None:
    # given two nodes of two devices that a replica would fill, with others on both, one of them small enough to stay
    log, endable = held_for_a_group(2)
    demand = demand_of_group(log, 88)
    allowed = {each.replica.model: 1 for each in endable}
    found = least_set(PlannedFleet(log.fleet), demand, BALANCED, endable, allowed)
    assert found is not None
    assert ["m-old1-1", "m-old2-1"] == [each.replica.id for each in found.ends]
    assert {"n-a", "n-b"} == {member.node for member in found.members}
    # and where one of them may not end there is no room at all
    assert least_set(PlannedFleet(log.fleet), demand, BALANCED, endable, {**allowed, ModelId("m-old2"): 0}) is None
