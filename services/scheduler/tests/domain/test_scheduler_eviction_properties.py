"""Whatever happens in whatever order: none ends below its minimum, in use or in turns, and room is promised once."""

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.commit import Decision, Recorded
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.node import Healthy, Unhealthy
from weft_contracts.facts.replica import Evicted
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.subjects import MESH, machine, node
from weft_fleet import Fleet
from weft_placement import CandidateRanking, PlannedFleet, chosen_policy
from weft_placement.decide import demand_for, members_of
from weft_placement.eviction import hold_rooms
from weft_placement.filters.avoid import avoided
from weft_placement.verify import verify
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import refold
from weft_testing.hand_log import GuardLost

from .evictions import GIB, RULE, Evictions, elastic

MODELS = {ModelId(f"m-{name}"): bounds for name, bounds in (("x", (0, 0)), ("y", (1, 0)), ("z", (0, 1)), ("w", (0, 2)))}
"""By model, its minimum and its priority."""
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("scale"), st.sampled_from([*MODELS]), st.integers(1, 2)),
        st.tuples(st.just("use"), st.sampled_from([*MODELS]), st.integers(0, 4)),
        st.tuples(st.just("moment"), st.just(ModelId("m-x")), st.just(0)),
        st.tuples(st.just("wait"), st.just(ModelId("m-x")), st.integers(1, 400)),
        st.tuples(st.just("serve"), st.just(ModelId("m-x")), st.just(0)),
        st.tuples(st.just("end"), st.just(ModelId("m-x")), st.just(0)),
        st.tuples(st.just("node"), st.just(ModelId("m-x")), st.integers(0, 5)),
        st.tuples(st.just("race"), st.sampled_from([*MODELS]), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


class World(Evictions):
    """Two nodes, four models, and what befalls them."""

    def __init__(self) -> None:
        super().__init__()
        self.log.node("a", 4 * GIB)
        self.log.node("b", 3 * GIB)
        for place, (id, (least, priority)) in enumerate(MODELS.items()):
            spec = elastic((1 + place % 3) * GIB, min_replicas=least, priority=priority)
            self.log.model(id[2:], spec, replicas=1)

    def happen(self, what: str, model: ModelId, number: int) -> None:
        now = self.log.now
        match what:
            case "scale":
                self.log.scale(model, number)
            case "use":
                self.unknown.discard(model)
                self.used[model] = [None, now, now - 100, now, now - RULE.idle_s + 0.4][number]
                if number == 3:
                    self.unknown.add(model)
            case "moment":
                self.log.now += 0.5
            case "wait":
                self.log.now += number
            case "serve":
                self.serve()
            case "end":
                self.end()
            case "node":
                facts = (Healthy(), Unhealthy(silent_for=5), Healthy(), PressureChanged(device=0, bytes=GIB))
                if number < 4:
                    fact = facts[number]
                    id = NodeId("n-a")
                    self.log.add(machine(id) if isinstance(fact, PressureChanged) else node(id), fact)
                else:
                    lifted = BrakeLifted(by="admin", why="x")
                    self.log.add(MESH, BrakeSet(silent=2, healthy_before=2) if number == 4 else lifted)
            case _:  # a deploy comes between the decision and its append
                self.append(self.decided(), meanwhile=model)
                return
        self.append(self.decided())

    def append(self, decisions: list[Decision], meanwhile: ModelId | None = None) -> None:
        if meanwhile is not None:
            view = self.log.fleet.models[meanwhile]
            self.log.model(view.name, view.spec.model_copy(update={"min_replicas": 1}), digest=view.digest)
        for decision in decisions:
            try:
                self.log.take([decision])
            except GuardLost:
                assert meanwhile is not None, "a decision lost although nothing happened meanwhile"


def before(commits: list[Recorded], sequence: int) -> Fleet:
    return refold(commit for commit in commits if commit.sequence < sequence)


def evictions(commits: list[Recorded]) -> list[tuple[Recorded, ReplicaId, Evicted]]:
    return [
        (commit, ReplicaId(commit.aggregate.key), fact)
        for commit in commits
        for fact in commit.facts
        if isinstance(fact, Evicted)
    ]


def check_protection(commits: list[Recorded]) -> None:
    for commit, id, fact in evictions(commits):
        fleet = before(commits, commit.sequence)
        model, waiting = fleet.models[fleet.replicas[id].model], fleet.models[fact.model]
        assert len(model.ready) > model.current.spec.min_replicas, "it fell below its minimum"
        assert model.current.spec.priority <= waiting.current.spec.priority, "it came before what waits"
        assert fleet.brake is None, "the brake held"
        assert fact.receipt is not None
        use = next(each for each in fact.receipt.read.uses if each.model == model.id)
        assert use.known, "its last use was unknown"
        assert use.idle_s >= RULE.idle_s, "it was in use"
        assert fact.waiting in fleet.waiting, "nothing waited for its room"


def check_priorities(commits: list[Recorded]) -> None:
    """Nobody who comes before could have had the same room."""
    for commit, _, fact in evictions(commits):
        assert fact.receipt is not None
        fleet = before(commits, fact.receipt.position + 1)
        ends = [id for _, id, its in evictions(commits) if (its.waiting, its.until) == (fact.waiting, fact.until)]
        for id in fleet.waiting:
            view, room = fleet.replicas[id], fleet.rooms.get(id)
            if room is not None and fact.receipt.decided_at < room.until:
                continue
            if fleet.spec_of(view)[1].priority <= fleet.spec_of(fleet.replicas[fact.waiting])[1].priority:
                continue
            if any(fleet.replicas[each].model == view.model for each in ends):
                continue
            planned = PlannedFleet(fleet)
            hold_rooms(planned, fact.receipt.decided_at)
            for each in ends:
                planned.release(fleet.replicas[each])
            policy = chosen_policy(fleet, fleet.spec_of(view)[1])
            ranking = CandidateRanking(demand_for(fleet, view, policy), policy)
            ranking.sync(planned)
            best = ranking.best(avoided(view.avoid))
            there = {member.node for member in (() if best is None else members_of(best))}
            assert not there & {member.node for member in fact.members}, f"{id} comes before, at {commit.sequence}"


def check_turns(commits: list[Recorded]) -> None:
    last: dict[tuple[ModelId, ModelId], float] = {}
    for commit, id, fact in evictions(commits):
        fleet, assert_at = before(commits, commit.sequence), fact.receipt
        assert assert_at is not None
        gives, takes = fleet.replicas[id].model, fact.model
        paid = last.get((takes, gives))
        assert paid is None or assert_at.decided_at - paid >= RULE.turn_s, "two ended one another in turns"
        last[gives, takes] = assert_at.decided_at


def overcommitted(fleet: Fleet) -> list[tuple[NodeId, int]]:
    found: list[tuple[NodeId, int]] = []
    for id, view in fleet.nodes.items():
        assert view.hardware is not None
        sizes = {device.index: device.memory for device in view.hardware.devices}
        found += [(id, index) for index, claimed in fleet.claims(id).items() if claimed > sizes[index]]
    return found


@settings(max_examples=120, deadline=None)
@given(happenings=HAPPENINGS)
def test_no_order_of_events_ends_what_is_protected_or_in_turns_and_all_of_it_comes_out_again(
    happenings: list[tuple[str, ModelId, int]],
) -> None:
    world = World()
    for happening in happenings:
        world.happen(*happening)
        assert [] == overcommitted(world.log.fleet)
    commits = world.log.commits
    check_protection(commits)
    check_priorities(commits)
    check_turns(commits)
    found = verify(commits)
    assert [] == found.mismatches
    assert len(evictions(commits)) == found.decisions["evicted"]
    world.fold()
    assert refold(commits) == world.state.fleet


def ends_something(decisions: list[Decision]) -> bool:
    return any(isinstance(fact, Evicted) for each in decisions for commit in each.commits for fact in commit.facts)


@settings(max_examples=25, deadline=None)
@given(happenings=HAPPENINGS, waits=st.lists(st.booleans(), min_size=40, max_size=40))
def test_what_was_searched_for_in_vain_before_hides_no_end_from_who_goes_on(
    happenings: list[tuple[str, ModelId, int]], waits: list[bool]
) -> None:
    world = World()
    for happening, wait in zip(happenings, waits, strict=False):
        world.happen(*happening)
        if not wait:
            continue
        # when as much time has passed as it takes until each has had its turn, and another scheduler begins
        world.log.now += 10
        anew = State()
        anew.fold(world.log.commits)
        begun = decide(anew, Rules(eviction=RULE), world.log.now, world.seed, {}, world.use)
        assert ends_something(begun) == ends_something(world.decided())


def test_two_models_with_room_for_one_take_turns_no_faster_than_the_rule_says() -> None:
    world = Evictions()
    world.log.node("a", 4 * GIB)
    for name in "pq":
        world.log.model(name, elastic(3 * GIB))
    # when both are asked for all the time, and whoever serves is idle at once
    for _ in range(60):
        for id in (ModelId("m-p"), ModelId("m-q")):
            view = world.log.fleet.models[id]
            if not any(world.log.fleet.replicas[each].wanted for each in view.replicas):
                world.log.scale(id, 1)
        world.settle()
        world.serve()
        world.end()
        world.log.now += 31
    commits = world.log.commits
    check_turns(commits)
    assert 2 < len(evictions(commits)) < 60 * 31 / RULE.turn_s + 2
    assert [] == verify(commits).mismatches
