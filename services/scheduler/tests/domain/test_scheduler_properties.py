"""Whatever happens in whatever order: no device is overcommitted, no batch breaks its guards, and who drains gets
nothing."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.commit import Decision
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.model import Deleted
from weft_contracts.facts.node import Assigned, Cordoned, Draining, Healthy, Removed, Resumed, Uncordoned, WentOffline
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Failed, Loading, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import machine, model, node, run
from weft_placement.verify import verify
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog, refold
from weft_testing.hand_log import GuardLost

GIB = 1 << 30
NODES = [NodeId(f"n-{letter}") for letter in "abc"]
MODELS = [ModelId("m-x"), ModelId("m-y")]
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NODES), st.integers(0, 6)),
        st.tuples(st.just("scale"), st.sampled_from(MODELS), st.integers(1, 4)),
        st.tuples(st.just("retire"), st.sampled_from(MODELS), st.integers(0, 5)),
        st.tuples(st.just("run"), st.sampled_from(MODELS), st.integers(0, 20)),
        st.tuples(st.just("delete"), st.sampled_from(MODELS), st.just(0)),
        st.tuples(st.just("decide"), st.just(""), st.integers(0, 2)),
        st.tuples(st.just("race"), st.sampled_from(NODES), st.integers(0, 6)),
        st.tuples(st.just("lose"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


class World:
    """A mesh in which things happen, and its scheduler."""

    def __init__(self, strategy: str) -> None:
        self.log = FleetLog()
        for index, id in enumerate(NODES):
            self.log.node(id[2:], *[(2 + index) * GIB] * 2)
        for index, id in enumerate(MODELS):
            given = {"source": SimulatedSource(), "engine": "simulated", "strategy": strategy}
            args = {"memory_bytes": (index + 1) * GIB}
            self.log.model(id[2:], ModelSpec.model_validate({**given, "engine_args": args}), replicas=1)
        self.state = State()
        self.folded = 0
        self.now = 0.0

    def happen(self, what: str, whom: str, number: int) -> None:
        log = self.log
        match what:
            case "node":
                self.to_node(NodeId(whom), number)
            case "scale":
                log.scale(ModelId(whom), number)
            case "retire":
                ids = [id for id in log.fleet.models[ModelId(whom)].replicas if log.fleet.replicas[id].wanted]
                if number < len(ids):
                    log.retire(ids[number])
            case "run":
                self.run(ModelId(whom), number)
            case "delete":
                log.add(model(ModelId(whom)), Deleted())
            case "lose":
                self.decided()
            case "race":
                self.decide_after(lambda: self.to_node(NodeId(whom), number))
            case _:
                self.now += number * 40
                self.decide_after(lambda: None)

    def decided(self) -> list[Decision]:
        self.state.fold(self.log.commits[self.folded :])
        self.folded = len(self.log.commits)
        return decide(self.state, Rules(), self.now, 1)

    def decide_after(self, meanwhile: Callable[[], None]) -> None:
        decisions = self.decided()
        moved = len(self.log.commits)
        meanwhile()
        moved = len(self.log.commits) != moved
        for decision in decisions:
            try:
                self.log.take([decision])
            except GuardLost:
                assert moved, "a decision lost although nothing happened meanwhile"

    def to_node(self, id: NodeId, number: int) -> None:
        facts = (
            Healthy(),
            WentOffline(silent_for=9),
            Cordoned(),
            Uncordoned(),
            Draining(why="admin", deadline_s=1),
            Resumed(),
            PressureChanged(device=0, bytes=GIB),
        )
        fact = facts[number]
        self.log.add(machine(id) if isinstance(fact, PressureChanged) else node(id), fact)

    def run(self, id: ModelId, number: int) -> None:
        """Something happens to a run of the model, if the process may run at all."""
        for node_id in NODES:
            for replica, assignment in self.log.fleet.assigned(node_id).assignments.items():
                if assignment.model == id and assignment.holds and number % 3 == assignment.epoch % 3:
                    facts = (
                        Loading(epoch=assignment.epoch, incarnation=Incarnation("i")),
                        Stopped(epoch=assignment.epoch, why="retired"),
                        Failed(epoch=assignment.epoch, reason="x", permanent=False, starts=3),
                    )
                    self.log.add(run(node_id, ReplicaId(replica)), facts[number // 7])
                    return

    def assigned_while_draining(self, since: int) -> list[NodeId]:
        """Nodes that drained when a replica was assigned to them, in the records from `since` on."""
        return [
            NodeId(record.aggregate.key)
            for index, record in enumerate(self.log.commits)
            if index >= since and any(isinstance(fact, Assigned) for fact in record.facts)
            for last in [self.drain_before(NodeId(record.aggregate.key), index)]
            if isinstance(last, Draining)
        ]

    def drain_before(self, id: NodeId, index: int) -> Fact | None:
        """The last that was said of a node's draining before a record."""
        said = [f for r in self.log.commits[:index] if r.aggregate == node(id) for f in r.facts]
        return next((fact for fact in reversed(said) if isinstance(fact, Draining | Resumed)), None)

    def overcommitted(self) -> list[tuple[NodeId, int]]:
        found: list[tuple[NodeId, int]] = []
        for id, view in self.log.fleet.nodes.items():
            assert view.hardware is not None
            sizes = {device.index: device.memory for device in view.hardware.devices}
            claims = self.log.fleet.claims(id)
            found += [(id, index) for index, claimed in claims.items() if claimed > sizes[index]]
        return found


@settings(max_examples=150, deadline=None)
@given(happenings=HAPPENINGS, strategy=st.sampled_from(["binpack", "spread"]))
def test_no_order_of_events_overcommits_a_device_or_breaks_a_guard_or_places_where_a_node_drains(
    happenings: list[tuple[str, str, int]], strategy: str
):
    world = World(strategy)
    for happening in happenings:
        before = len(world.log.commits)
        world.happen(*happening)
        assert [] == world.overcommitted()
        assert [] == world.assigned_while_draining(before)
    world.state.fold(world.log.commits[world.folded :])
    again = refold(world.log.commits)
    assert again == world.state.fleet == world.log.fleet
    assert again.digest() == world.state.fleet.digest()
    waiting = {id for _, group in world.state.waiting for id in group.replicas}
    assert set(again.waiting) == waiting
    verified = verify(world.log.commits)
    assert [] == verified.mismatches
    placed = [fact for commit in world.log.commits for fact in commit.facts if isinstance(fact, Placed)]
    assert len(placed) == verified.decisions["placed"]


@settings(max_examples=60, deadline=None)
@given(happenings=HAPPENINGS)
def test_a_scheduler_that_starts_anew_comes_to_the_same_rest(happenings: list[tuple[str, str, int]]):
    world = World("binpack")
    for happening in happenings:
        world.happen(*happening)
    for _ in range(100):
        decisions = world.decided()
        if not decisions:
            break
        for decision in decisions:
            world.log.take([decision])
    else:
        raise AssertionError("the scheduler does not come to rest")
    fresh = State()
    fresh.fold(world.log.commits)
    assert [] == decide(fresh, Rules(), world.now, 1)


def test_removal_ends_what_silence_does_not():
    world = World("binpack")
    world.decide_after(lambda: None)
    placed = [view for view in world.log.fleet.replicas.values() if view.members]
    (where, *_) = {view.members[0].node for view in placed}
    world.log.add(node(where), WentOffline(silent_for=9))
    assert {} != world.log.fleet.claims(where)
    world.log.add(node(where), Removed(why="sold"))
    assert {} == world.log.fleet.claims(where)
