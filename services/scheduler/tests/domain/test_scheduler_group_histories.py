"""Whatever happens to its ranks and its nodes, in whatever order: a group is whole or absent."""

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.facts.node import Healthy, Removed, WentOffline
from weft_contracts.facts.run import Failed, Loading, Ready, RunFact, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.formats import READS, WORKERS_READ
from weft_contracts.ids import Incarnation, ModelId, NodeId
from weft_contracts.subjects import MESH, node, run
from weft_fleet import ReplicaView
from weft_placement.verify import verify
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog, refold

GIB = 1 << 30
NODES = [NodeId(f"n-{letter}") for letter in "abcde"]
BIG = ModelId("m-big")
SIZE = 24 * GIB
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.integers(0, 5), st.integers(0, 7)),
        st.tuples(st.just("ready"), st.just(0), st.just(0)),
        st.tuples(st.just("node"), st.integers(0, 4), st.integers(0, 2)),
        st.tuples(st.just("retire"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("scale"), st.just(0), st.just(0)),
        st.tuples(st.just("decide"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


class World:
    """Five machines with an accelerator each, and a model that takes three of them."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.log.add(MESH, *(FormatRaised(fact=fact, version=version) for fact, version in READS.items()))
        for id in NODES:
            self.log.node(id[2:], SIZE, reads=WORKERS_READ)
        spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 60 * GIB})
        self.log.model("big", spec, replicas=1)
        self.decide()

    def decide(self) -> None:
        state = State()
        state.fold(self.log.commits)
        self.log.take(decide(state, Rules(), float(self.log.head), 1))

    def placed(self) -> list[ReplicaView]:
        return [each for each in self.log.fleet.replicas.values() if each.members]

    def happen(self, what: str, which: int, how: int) -> None:
        log, placed = self.log, self.placed()
        match what:
            case "run" if placed:
                view = placed[which % len(placed)]
                member = view.members[how % len(view.members)]
                part, last = log.fleet.assignment(member.node, view.id), view.runs.get(member.node)
                over = last is not None and last.phase in ("stopped", "failed") and (part is None or part.retiring)
                if not over or which > 2:  # what has ended and isn't wanted any more doesn't start again
                    log.add(run(member.node, view.id), said(max(1, view.epoch - how % 2), which))
            case "ready" if placed and placed[-1].wanted:
                for member in placed[-1].members:
                    log.add(run(member.node, placed[-1].id), said(placed[-1].epoch, 1))
            case "node":
                fact = (WentOffline(silent_for=9), Healthy(), Removed(why="gone"))[how]
                if NODES[which] in log.fleet.nodes:
                    log.add(node(NODES[which]), fact)
            case "retire":
                wanted = [each for each in log.fleet.replicas.values() if each.wanted]
                if which < len(wanted):
                    log.retire(wanted[which].id)
            case "scale":
                log.scale(BIG, 1)
            case _:
                self.decide()

    def check(self) -> None:
        fleet = self.log.fleet
        for view in self.placed():
            assert 3 == len(view.members)
            parts = {member.node: fleet.assignment(member.node, view.id) for member in view.members}
            there = {id: part for id, part in parts.items() if part is not None}
            assert {view.epoch} >= {part.epoch for part in there.values()}, "all ranks are of one epoch"
            assert all(id in there or view_is_out(self.log, id) for id in parts), "it is assigned on all nodes or none"
            assert len({part.retiring for part in there.values()}) <= 1
            ranks = [view.runs.get(id) for id in parts]
            whole = all(run is not None and run.phase == "ready" and run.epoch == view.epoch for run in ranks)
            assert not (view.state == "ready" and not whole), "it answers only where every rank does"
            assert not view.broken or view.id in fleet.broken
        assert all(fleet.replicas[id].broken for id in fleet.broken)
        for id in NODES:
            assert all(held <= SIZE for held in fleet.claims(id).values())


def view_is_out(log: FleetLog, id: NodeId) -> bool:
    view = log.fleet.nodes.get(id)
    return view is None or view.removed


def said(epoch: int, which: int) -> RunFact:
    start = Incarnation(f"i-{epoch}")
    match which:
        case 0:
            return Loading(epoch=epoch, incarnation=start)
        case 1 | 2:
            return Ready(epoch=epoch, incarnation=start, port=1, engine="simulated", engine_version="1")
        case 3 | 4:
            return Stopped(epoch=epoch, why="exited", detail="killed")
        case _:
            return Failed(epoch=epoch, reason="bad", permanent=False, starts=4)


@settings(max_examples=60)
@given(HAPPENINGS)
def test_a_group_is_whole_or_absent(happenings: list[tuple[str, int, int]]) -> None:
    world = World()
    for happening in happenings:
        world.happen(*happening)
        world.check()
    assert refold(world.log.commits).digest() == world.log.fleet.digest()
    again = verify(world.log.commits)
    assert [] == again.mismatches
    assert again.decisions["placed"] > 0
