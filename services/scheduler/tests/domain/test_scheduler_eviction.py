"""Given a log and what gateways say, who ends so that a replica without a place gets one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from weft_contracts.commit import Cause, Commit, Decision, Guard, Recorded
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.mesh import BrakeSet, FormatRaised
from weft_contracts.facts.model import GaveWay, Scaled, SpecAccepted
from weft_contracts.facts.node import WentOffline
from weft_contracts.facts.replica import Evicted, Unplaceable
from weft_contracts.formats import READS, WORKERS_READ
from weft_contracts.ids import CorrelationId, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import MESH, machine, model, node, replica
from weft_fleet import Fleet
from weft_placement import explain_decision
from weft_placement.eviction import LeastSet, least_set
from weft_placement.eviction.soon import STARTS, STOPS
from weft_placement.verify import verify
from weft_scheduler.domain.evict import AT_ONCE
from weft_testing.hand_log import GuardLost

from .evictions import GIB, RULE, Evictions, elastic

CAUSE = Cause(CorrelationId("c-test"))
OLD, NEW = ReplicaId("m-old-1"), ReplicaId("m-new-1")


@pytest.fixture(name="mesh")
def one_device_that_an_old_model_fills() -> Evictions:
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    mesh.serving("old", 8 * GIB)
    return mesh


def test_an_idle_replica_ends_for_one_without_a_place_in_one_batch_that_tells_both(mesh: Evictions) -> None:
    new = mesh.wanted("new", 8 * GIB)
    (decision,) = mesh.decided()
    gave_way, ended, told = decision.commits
    (evicted,) = ended.facts
    assert isinstance(evicted, Evicted)
    assert (replica(NEW), Guard(replica(NEW), 0)) == (told.aggregate, told.guard)
    assert isinstance(told.facts[0], Unplaceable)
    old = mesh.log.fleet.models[mesh.log.fleet.replicas[OLD].model]
    assert (model(old.id), Guard(model(old.id), old.sequence)) == (gave_way.aggregate, gave_way.guard)
    assert (GaveWay(replicas=(OLD,), waiting=NEW),) == gave_way.facts
    assert (replica(OLD), Guard(replica(OLD), mesh.log.fleet.replicas[OLD].sequence)) == (ended.aggregate, ended.guard)
    assert (NEW, new, NodeId("n-a")) == (evicted.waiting, evicted.model, evicted.members[0].node)
    assert f"it was idle for 100 s, and made room for {NEW} of new" == evicted.why
    assert evicted.receipt is not None
    assert (mesh.log.fleet.position, RULE) == (evicted.receipt.position, evicted.receipt.read.rule)
    assert ["g"] == [reading.gateway for reading in evicted.receipt.read.uses[0].gateways]


def test_who_reads_an_eviction_commit_by_commit_sees_what_waits_never_without_a_room(mesh: Evictions) -> None:
    # given one that waits, with a reason why nothing ends for it yet
    mesh.used[ModelId("m-old")] = mesh.log.now - 1
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert "would make room, but" in mesh.kept(NEW)
    # when one ends for it
    mesh.log.now += RULE.idle_s + RULE.settled_s
    mesh.settle()
    assert [OLD] == mesh.evicted()
    # then after each commit of all, it has a room or such a reason: gateways refuse no request that waits for it
    seen: set[str] = set()
    fleet = Fleet()
    for commit in mesh.log.commits:
        fleet.apply(commit)
        view = fleet.replicas.get(NEW)
        if view is not None and view.state == "unplaceable":
            assert view.unplaceable is not None
            assert view.unplaceable.kept is not None or NEW in fleet.rooms
            seen.add("a room" if NEW in fleet.rooms else "a reason")
    assert {"a reason", "a room"} == seen


def test_what_ended_leaves_in_order_and_then_the_other_has_its_place(mesh: Evictions) -> None:
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    # it may still answer: its claim stands until its process is gone
    assert ([OLD], "stopping") == (mesh.evicted(), mesh.log.fleet.replicas[OLD].state)
    assert "unplaceable" == mesh.log.fleet.replicas[NEW].state
    mesh.end()
    mesh.settle()
    assert "placed" == mesh.log.fleet.replicas[NEW].state
    assert {} == mesh.log.fleet.rooms
    found = verify(mesh.log.commits)
    assert [] == found.mismatches
    assert {"placed": 2, "unplaceable": 1, "evicted": 1} == found.decisions


def test_a_model_that_gave_way_wants_no_other_in_its_place(mesh: Evictions) -> None:
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    size = mesh.log.fleet.models[mesh.log.fleet.replicas[OLD].model].size
    assert size is not None
    assert (0, 1) == (size.replicas, size.was)
    assert mesh.log.fleet.models[mesh.log.fleet.replicas[OLD].model].asleep


def test_room_that_was_made_for_one_is_given_to_no_other(mesh: Evictions) -> None:
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    mesh.end()
    # when another would fit in what is free now, and is looked at before
    late = mesh.wanted("late", 2 * GIB, priority=5)
    mesh.settle()
    assert ["placed", "unplaceable"] == [mesh.log.fleet.replicas[id].state for id in (NEW, ReplicaId(f"{late}-1"))]
    assert [] == verify(mesh.log.commits).mismatches


def test_room_is_kept_for_a_while_and_no_longer(mesh: Evictions) -> None:
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    mesh.log.add(node(NodeId("n-a")), WentOffline(silent_for=9))
    late = mesh.wanted("late", GIB)
    b = mesh.log.node("b", GIB)
    mesh.settle()
    assert b == mesh.log.fleet.replicas[ReplicaId(f"{late}-1")].members[0].node
    room = mesh.log.fleet.rooms[NEW]
    assert (mesh.log.now + RULE.room_s, (OLD,)) == (room.until, room.evicted)
    assert "n-a" not in str(verify(mesh.log.commits).mismatches)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("in use", "that was used less than 30 s ago"),
        ("used lately", "that was used less than 30 s ago"),
        ("unknown", "it isn't known when that was used last"),
        ("just ready", "it has been ready for less than 60 s"),
    ],
)
def test_what_is_in_use_or_unknown_or_new_stays_and_what_waits_is_told_so(
    mesh: Evictions, change: str, why: str
) -> None:
    old = mesh.log.fleet.replicas[OLD].model
    match change:
        case "in use":
            mesh.used[old] = None
        case "used lately":
            mesh.used[old] = mesh.log.now - 29
        case "unknown":
            mesh.unknown.add(old)
        case _:
            mesh.log.now -= 60
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert [] == mesh.evicted()
    assert f"ending {OLD} of old on a would make room, but {why}" == mesh.kept(NEW)
    assert [] == verify(mesh.log.commits).mismatches
    # and as time passes it ends, though nothing happened
    mesh.unknown.clear()
    mesh.used[old] = mesh.log.now
    mesh.log.now += 61
    mesh.settle()
    assert [OLD] == mesh.evicted()


@pytest.mark.parametrize(
    "more",
    [{"min_replicas": 1, "max_replicas": 1}, {"min_replicas": 1}, {"priority": 1}],
    ids=["its number is told", "it is its minimum", "it comes before"],
)
def test_a_protected_replica_never_ends(more: dict[str, int]) -> None:
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    mesh.serving("old", 8 * GIB, **more)
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert ([], "") == (mesh.evicted(), mesh.kept(NEW))


def test_nothing_ends_while_the_brake_holds(mesh: Evictions) -> None:
    mesh.log.add(MESH, BrakeSet(silent=2, healthy_before=2))
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert [] == mesh.evicted()


def test_a_minimum_that_is_raised_meanwhile_wins(mesh: Evictions) -> None:
    mesh.wanted("new", 8 * GIB)
    decisions = mesh.decided()
    mesh.log.model("old", elastic(8 * GIB, min_replicas=1), digest="old-1")
    with pytest.raises(GuardLost):
        mesh.log.take(decisions)


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_that_take_the_last_that_a_model_can_spare_one_loses(first: int) -> None:
    # given two replicas of a model that needs one, and two schedulers that each want another one's place
    meshes = Evictions(), Evictions()
    for mesh in meshes:
        mesh.log.node("a", 8 * GIB, labels={"at": "a"})
        mesh.log.node("b", 8 * GIB, labels={"at": "b"})
        mesh.serving("old", 8 * GIB, 2, min_replicas=1)
        for at in "ab":
            mesh.wanted(at, 8 * GIB, selector={"at": at})
    one, other = meshes
    (of_a,) = one.decided()
    other.fold()
    for revision, group in other.state.waiting:
        group.evict_at = other.log.now + 1 if revision[0] == "m-a" else 0.0
    (of_b,) = other.decided()
    # when both are appended to one log
    decisions = [of_a, of_b] if first == 0 else [of_b, of_a]
    one.log.take(decisions[:1])
    with pytest.raises(GuardLost):
        one.log.take(decisions[1:])
    # then the minimum stands
    assert 1 == len(one.log.fleet.models[ModelId("m-old")].ready)


def test_of_an_end_for_another_and_one_that_is_not_wanted_the_second_loses() -> None:
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    mesh.log.node("b", 8 * GIB)
    id = mesh.serving("old", 8 * GIB, 2, min_replicas=1)
    before = mesh.log.fleet.models[id].sequence
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    (evicted,) = mesh.evicted()
    (left,) = mesh.log.fleet.models[id].ready
    retired = Commit(
        model(id), (Scaled(revision=1, retire=(left,), why="one is enough"),), Guard(model(id), before), CAUSE
    )
    with pytest.raises(GuardLost):
        mesh.log.take([Decision((retired,))])
    assert evicted != left


def test_the_fewest_end_and_of_as_many_the_longest_idle() -> None:
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    small = [mesh.serving(f"small-{letter}", 2 * GIB) for letter in "abcd"]
    mesh.log.now += 1000
    mesh.used = {id: mesh.log.now - 100 * (place + 1) for place, id in enumerate(small)}
    mesh.wanted("new", 4 * GIB)
    mesh.settle()
    assert ["m-small-c-1", "m-small-d-1"] == sorted(mesh.evicted())
    assert [] == verify(mesh.log.commits).mismatches


def test_of_replicas_that_wait_the_one_of_a_higher_priority_comes_first(mesh: Evictions) -> None:
    mesh.wanted("new", 8 * GIB)
    high = mesh.wanted("high", 8 * GIB, priority=2)
    mesh.settle()
    assert [ReplicaId(f"{high}-1")] == list(mesh.log.fleet.rooms)


def test_who_comes_before_has_the_room_though_it_is_not_its_turn_to_be_looked_at(mesh: Evictions) -> None:
    # given one of a high priority that was looked at a moment ago, when nothing might end yet
    at = mesh.log.now
    mesh.used[ModelId("m-old")] = at - RULE.idle_s + 0.4
    mesh.wanted("high", 8 * GIB, priority=100)
    mesh.settle()
    assert [] == mesh.evicted()
    # when it may, and one of a lower priority has come
    mesh.log.now = at + 0.5
    mesh.wanted("low", 8 * GIB)
    # then nobody is told that there is no place, since there is one in a moment, and the other has it
    assert [] == mesh.decided()
    mesh.settle()
    assert ([OLD], ["m-high-1"]) == (mesh.evicted(), list(mesh.log.fleet.rooms))


@pytest.mark.parametrize(
    ("other", "first"),
    [("used lately", ["m-high-1"]), ("in use", ["m-low-1"]), ("unknown", ["m-low-1"])],
)
def test_nothing_ends_for_one_while_who_comes_before_could_soon_use_the_same_room(other: str, first: list[str]) -> None:
    # given two that fill a device, one of them idle, and one of a high priority that needs all of it
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    idle, busy = mesh.serving("idle", 4 * GIB), mesh.serving("busy", 4 * GIB)
    match other:
        case "used lately":
            mesh.used[busy] = mesh.log.now - 1
        case "in use":
            mesh.used[busy] = None
        case _:
            mesh.unknown.add(busy)
    mesh.wanted("high", 8 * GIB, priority=1)
    mesh.wanted("low", 4 * GIB)
    mesh.settle()
    assert (first == ["m-low-1"]) == (mesh.evicted() == [f"{idle}-1"])
    # then it has its room as soon as time has passed; what stays in use doesn't hold up the other
    mesh.log.now += RULE.idle_s
    mesh.settle()
    assert first == list(mesh.log.fleet.rooms)
    assert [] == verify(mesh.log.commits).mismatches


def test_who_comes_before_and_could_not_use_the_room_holds_up_nobody(mesh: Evictions) -> None:
    for number in range(2 * AT_ONCE):
        mesh.wanted(f"huge{number}", 64 * GIB, priority=1)
    mesh.wanted("elsewhere", 8 * GIB, priority=1, selector={"at": "another"})
    mesh.wanted("new", 8 * GIB)
    for _ in range(8):
        mesh.settle()
        mesh.log.now += 1
    assert ([OLD], [NEW]) == (mesh.evicted(), list(mesh.log.fleet.rooms))


def test_one_over_several_nodes_that_comes_before_holds_up_who_would_take_of_its_room() -> None:
    # given three devices of which only two together hold what comes first, and a third that is full
    mesh = Evictions()
    mesh.log.add(MESH, *(FormatRaised(fact=fact, version=version) for fact, version in READS.items()))
    for name in "abc":
        mesh.log.node(name, 10 * GIB, reads=dict(WORKERS_READ))
    old = mesh.serving("old", 9 * GIB, 2)
    mesh.serving("fixed", 9 * GIB, min_replicas=1)
    mesh.used[old] = mesh.log.now - RULE.idle_s + 0.4
    mesh.wanted("high", 16 * GIB, priority=1)
    mesh.settle()
    # when one that needs one device comes, and both may end, but it isn't the other's turn to be looked at
    mesh.log.now += 0.5
    mesh.wanted("low", 9 * GIB)
    mesh.settle()
    assert ["m-old-1", "m-old-2"] == sorted(mesh.evicted())
    assert ["m-high-1"] == list(mesh.log.fleet.rooms)
    assert [] == verify(mesh.log.commits).mismatches


def test_one_that_just_made_room_is_not_paid_back_for_a_while(mesh: Evictions) -> None:
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    mesh.end()
    mesh.settle()
    mesh.serve()
    mesh.log.now += 100
    mesh.log.scale(mesh.log.fleet.replicas[OLD].model, 1)
    mesh.settle()
    assert [OLD] == mesh.evicted()
    assert "what waits made room for that less than 300 s ago" in mesh.kept(ReplicaId("m-old-2"))
    mesh.log.now += 300
    mesh.settle()
    assert [OLD, NEW] == mesh.evicted()
    assert [] == verify(mesh.log.commits).mismatches


def test_what_has_a_place_elsewhere_ends_nothing(mesh: Evictions) -> None:
    mesh.log.node("b", 8 * GIB)
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert ([], "n-b") == (mesh.evicted(), mesh.log.fleet.replicas[NEW].members[0].node)


def test_a_spec_of_before_priorities_counts_for_nought_and_says_nothing_of_them() -> None:
    spec = elastic()
    assert "priority" not in spec.model_dump(mode="json")
    assert "priority" not in SpecAccepted(name="x", revision=1, digest="d", spec=spec).model_dump_json()


@pytest.fixture(name="log")
def a_log_with_an_eviction() -> list[Recorded]:
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    for name in "xyz":
        mesh.serving(name, 2 * GIB)
    mesh.wanted("new", 6 * GIB)
    mesh.used[ModelId("m-x")] = mesh.log.now - 2
    mesh.settle()
    mesh.log.now += 1000
    mesh.settle()
    return mesh.log.commits


def verified_with(log: list[Recorded], change: Callable[[Evicted], Evicted]) -> list[str]:
    """What is said of a log with the first eviction of it changed."""
    changed, done = list(log), False
    for place, commit in enumerate(log):
        if not done and isinstance(commit.facts[0], Evicted):
            changed[place], done = replace(commit, facts=(change(commit.facts[0]),)), True
    assert done
    return [each.what for each in verify(changed).mismatches]


def with_use(fact: Evicted, **update: object) -> Evicted:
    """With another figure for the model that is told of with what each gateway said."""
    assert fact.receipt is not None
    uses = tuple(each.model_copy(update=update) if each.gateways else each for each in fact.receipt.read.uses)
    read = fact.receipt.read.model_copy(update={"uses": uses})
    return fact.model_copy(update={"receipt": fact.receipt.model_copy(update={"read": read})})


def test_evictions_and_why_there_was_none_come_out_again(log: list[Recorded]) -> None:
    found = verify(log)
    assert ([], 2) == (found.mismatches, found.decisions["evicted"])


CHANGES: list[tuple[Callable[[Evicted], Evicted], str]] = [
    (lambda fact: with_use(fact, known=False), "nothing would end"),
    (lambda fact: with_use(fact, idle_s=9.0), "nothing would end"),
    (lambda fact: with_use(fact, idle_s=90_000.0), "counts as idle for 90000 s, and a gateway says"),
    (lambda fact: fact.model_copy(update={"until": 0.0}), "until is"),
    (lambda fact: fact.model_copy(update={"members": ()}), "members is"),
    (lambda fact: fact.model_copy(update={"why": "because"}), "why is"),
    (lambda fact: fact.model_copy(update={"waiting": ReplicaId("m-x-9")}), "wasn't there"),
]


@pytest.mark.parametrize(("change", "what"), CHANGES)
def test_a_changed_eviction_is_found(log: list[Recorded], change: Callable[[Evicted], Evicted], what: str) -> None:
    assert any(what in each for each in verified_with(log, change)), verified_with(log, change)


def test_a_changed_reason_why_nothing_ends_is_found(mesh: Evictions) -> None:
    mesh.used[mesh.log.fleet.replicas[OLD].model] = None
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert [] == verify(mesh.log.commits).mismatches
    (place,) = (i for i, commit in enumerate(mesh.log.commits) if isinstance(commit.facts[0], Unplaceable))
    fact = mesh.log.commits[place].facts[0]
    assert isinstance(fact, Unplaceable)
    assert fact.kept is not None
    kept = fact.kept.model_copy(update={"why": "nobody knows"})
    changed = list(mesh.log.commits)
    changed[place] = replace(changed[place], facts=(fact.model_copy(update={"kept": kept}),))
    assert ["nobody knows" in each.what for each in verify(changed).mismatches] == [True]


def test_why_nothing_ends_is_told_beside_why_there_is_no_place(mesh: Evictions) -> None:
    mesh.used[mesh.log.fleet.replicas[OLD].model] = None
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    told = explain_decision(mesh.log.commits, NEW).outcome
    assert told.startswith("no node can take it; ")
    assert told.endswith(f"; ending {OLD} of old on a would make room, but that was used less than 30 s ago")


def test_where_many_wait_each_has_its_turn_to_be_looked_for(mesh: Evictions) -> None:
    # given more that fit nowhere at all than one round looks at, and behind them one that would fit
    for number in range(2 * AT_ONCE + 1):
        mesh.wanted(f"huge{number}", 64 * GIB)
    mesh.used[mesh.log.fleet.replicas[OLD].model] = mesh.log.now
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert [] == mesh.evicted()
    for _ in range(8):
        mesh.log.now += 10
        mesh.settle()
    assert [OLD] == mesh.evicted()


def test_what_has_a_place_gets_it_in_the_same_round_in_which_many_before_it_are_searched_for(mesh: Evictions) -> None:
    mesh.used[ModelId("m-old")] = None
    for number in range(3 * AT_ONCE):
        mesh.wanted(f"huge{number}", 64 * GIB)
    mesh.log.node("b", 2 * GIB)
    mesh.wanted("small", 2 * GIB)
    (decision,) = mesh.decided()
    assert ("placed", replica(ReplicaId("m-small-1"))) == (decision.why, decision.commits[0].aggregate)


def test_who_is_told_why_and_who_is_placed_waits_for_no_search_of_those_before(
    mesh: Evictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a search a round, and more that wait than have their turn within the time after which one is asked again
    monkeypatch.setattr("weft_scheduler.domain.evict.AT_ONCE", 1)
    tiny = mesh.log.node("tiny", GIB)
    mesh.log.node("free", 2 * GIB)
    mesh.used[ModelId("m-old")] = None
    for number in range(12):
        mesh.wanted(f"huge{number}", 64 * GIB)
    mesh.settle()

    def seconds(count: int) -> None:
        for _ in range(count):
            mesh.log.now += 1
            mesh.log.add(machine(tiny), PressureChanged(device=0, bytes=int(mesh.log.now) % 512))
            mesh.settle()

    # when some node changes all the time
    seconds(75)
    mesh.wanted("new", 8 * GIB)
    mesh.wanted("small", 2 * GIB)
    seconds(14)
    # then each has had its turn
    assert "placed" == mesh.log.fleet.replicas[ReplicaId("m-small-1")].state
    assert f"ending {OLD} of old on a would make room, but that was used less than 30 s ago" == mesh.kept(NEW)


def test_of_those_whose_search_has_to_wait_each_is_told_what_would_make_room(mesh: Evictions) -> None:
    mesh.used[ModelId("m-old")] = None
    names = [f"new{number}" for number in range(3 * AT_ONCE)]
    for name in names:
        mesh.wanted(name, 8 * GIB)
    mesh.settle()
    assert all(mesh.kept(ReplicaId(f"m-{name}-1")) for name in names)
    assert [] == verify(mesh.log.commits).mismatches


def test_what_was_searched_for_in_vain_is_searched_for_again_once_something_changed(
    mesh: Evictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []

    def counted(*asked: Any) -> LeastSet | None:
        searches.extend([len(asked[3])] if asked[3] else [])
        return least_set(*asked)

    monkeypatch.setattr("weft_placement.eviction.decide.least_set", counted)
    mesh.log.node("full", 2 * GIB)
    mesh.serving("fixed", 2 * GIB, min_replicas=1)
    mesh.wanted("huge", 10 * GIB)
    mesh.settle()

    def searched_within(seconds: int) -> list[int]:
        searches.clear()
        for _ in range(seconds):
            mesh.log.now += 1
            mesh.settle()
        return list(searches)

    # given nobody's end helps; when nothing changes, then nobody asks
    assert [] == searched_within(9)
    # when a node changes, or one more may end, then it is asked once
    mesh.log.add(machine(NodeId("n-a")), PressureChanged(device=0, bytes=5))
    assert [1] == searched_within(9)
    mesh.used[ModelId("m-old")] = mesh.log.now - RULE.idle_s + 5
    assert [1] == searched_within(9)
    # when nothing may end, then there is nothing to ask
    mesh.used[ModelId("m-old")] = None
    mesh.log.add(machine(NodeId("n-a")), PressureChanged(device=0, bytes=6))
    assert [] == searched_within(9)


def test_what_has_not_served_yet_may_make_room_in_a_while() -> None:
    # given another model's replica that takes all there is, and is placed
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    mesh.wanted("other", 8 * GIB)
    mesh.settle()
    # when one is wanted: then it is told that there may be room, and nothing ends
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert f"ending m-other-1 of other on a would make room, but {STARTS}" == mesh.kept(NEW)
    assert [] == mesh.evicted()
    # and once it serves and is idle, it makes room
    mesh.serve()
    mesh.log.now += RULE.idle_s + RULE.settled_s
    mesh.settle()
    assert [ReplicaId("m-other-1")] == mesh.evicted()
    assert [] == verify(mesh.log.commits).mismatches


def test_what_stops_may_make_room_in_a_while_whatever_its_model_is() -> None:
    # given a model with a told number, which is taken away and whose replica stops
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    fixed = mesh.serving("fixed", 8 * GIB, min_replicas=1, max_replicas=1)
    mesh.log.add(model(fixed), Scaled(revision=1, retire=(ReplicaId("m-fixed-1"),), why="was taken off"))
    mesh.settle()
    assert "stopping" == mesh.log.fleet.replicas[ReplicaId("m-fixed-1")].state
    # when one is wanted
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    # then
    assert f"ending m-fixed-1 of fixed on a would make room, but {STOPS}" == mesh.kept(NEW)
    mesh.end()
    mesh.settle()
    assert "placed" == mesh.log.fleet.replicas[NEW].state
    assert [] == verify(mesh.log.commits).mismatches


@pytest.mark.parametrize("more", [{"min_replicas": 1, "max_replicas": 1}, {"priority": 1}, {"min_replicas": 1}])
def test_what_has_not_served_and_is_kept_by_its_model_promises_nothing(more: dict[str, Any]) -> None:
    mesh = Evictions()
    mesh.log.node("a", 8 * GIB)
    mesh.wanted("other", 8 * GIB, **more)
    mesh.settle()
    mesh.wanted("new", 8 * GIB)
    mesh.settle()
    assert "unplaceable" == mesh.log.fleet.replicas[NEW].state
    assert "" == mesh.kept(NEW)
