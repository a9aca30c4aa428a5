"""Given a log, when the scheduler decides, then these commits."""

from typing import Any

import pytest
from weft_contracts.backends import BackendRecipe, BackendVariant
from weft_contracts.codec import encode
from weft_contracts.commit import MAX_COMMIT_BYTES, Cause, Commit, Decision, Guard
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import FileFound, PressureChanged, Reported
from weft_contracts.facts.mesh import BackendSet, EngineProfileSet
from weft_contracts.facts.model import Deleted, Retried, Unservable
from weft_contracts.facts.node import (
    Assigned,
    Cordoned,
    Draining,
    Healthy,
    Labelled,
    Removed,
    Unassigned,
    Uncordoned,
    WentOffline,
)
from weft_contracts.facts.replica import Evicted, Placed, Unplaceable
from weft_contracts.facts.run import Loading, Ready, Stopped
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import (
    Backend,
    DeviceClaim,
    InstalledBackend,
    Installs,
    Member,
    ModelSpec,
    Receipt,
    Weights,
)
from weft_contracts.ids import CorrelationId, Incarnation, InspectionId, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import MESH, machine, model, node, replica, run
from weft_fleet import Fleet
from weft_placement import explain_decision
from weft_scheduler.domain.batch import size_of
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
ONE, TWO, THREE = (ReplicaId(f"m-toy-{number}") for number in (1, 2, 3))
TOY = ModelId("m-toy")


def spec(bytes: int = GIB, **more: Any) -> ModelSpec:
    given = {"source": SimulatedSource(), "engine": "simulated", "engine_args": {"memory_bytes": bytes}}
    return ModelSpec.model_validate({**given, **more})


class Mesh:
    """A log in memory, and a scheduler that folds it."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.log = FleetLog()
        self.rules = rules or Rules()
        self.state = State()
        self.folded = 0
        self.now = 1000.0

    @property
    def fleet(self) -> Fleet:
        return self.log.fleet

    def decide(self, suspects: Any = ()) -> list[Decision]:
        """Fold what is new and decide, without appending."""
        self.state.fold(self.log.commits[self.folded :])
        self.folded = len(self.log.commits)
        return decide(self.state, self.rules, self.now, 7, dict.fromkeys(suspects, "unreadable"))

    def settle(self) -> list[Commit]:
        """Decide and append until nothing is left to say. Returns all that was appended."""
        appended: list[Commit] = []
        for _ in range(1000):
            decisions = self.decide()
            if not decisions:
                return appended
            for decision in decisions:
                self.log.take([decision])
                appended.extend(decision.commits)
        raise AssertionError("the scheduler does not come to rest")

    def where(self, id: ReplicaId) -> NodeId | None:
        leader = self.fleet.replicas[id].leader
        return leader.node if leader else None


@pytest.fixture
def mesh() -> Mesh:
    return Mesh()


def facts_of(commits: list[Commit], kind: type[Any]) -> list[Any]:
    return [fact for commit in commits for fact in commit.facts if isinstance(fact, kind)]


def test_a_wanted_replica_is_placed_and_assigned_in_one_batch(mesh: Mesh):
    a = mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    cause = mesh.fleet.replicas[ONE].cause
    (decision,) = mesh.decide()
    placed, assigned = decision.commits
    assert (replica(ONE), Guard(replica(ONE), 0), cause) == (placed.aggregate, placed.guard, placed.cause)
    sequence = mesh.fleet.nodes[a].sequence
    assert (node(a), Guard(node(a), sequence), cause) == (assigned.aggregate, assigned.guard, assigned.cause)
    (fact,) = assigned.facts
    assert isinstance(fact, Assigned)
    assert ("toy", 1, "toy-1", 1, spec()) == (
        fact.model_name,
        fact.revision,
        fact.digest,
        fact.epoch,
        fact.spec,
    )
    (outcome,) = placed.facts
    assert isinstance(outcome, Placed)
    assert (fact.members, fact.epoch) == (outcome.members, outcome.epoch)
    assert {0: GIB} == {claim.index: claim.bytes for claim in fact.member(a).devices}
    mesh.log.take([decision])
    assert "placed" == mesh.fleet.replicas[ONE].state
    assert [] == mesh.decide()


def test_replicas_of_one_cause_on_one_node_share_its_commit(mesh: Mesh):
    a = mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=3)
    (decision,) = mesh.decide()
    assert [replica(ONE), replica(TWO), replica(THREE), node(a)] == [c.aggregate for c in decision.commits]
    assert [ONE, TWO, THREE] == [fact.replica for fact in facts_of(list(decision.commits), Assigned)]


def test_replicas_of_two_causes_on_one_node_follow_one_another(mesh: Mesh):
    mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.log.model("other", spec(), replicas=1)
    (decision,) = mesh.decide()
    assert [ONE] == [fact.replica for fact in facts_of(list(decision.commits), Assigned)]
    mesh.log.take([decision])
    (decision,) = mesh.decide()
    assert ["m-other-1"] == [fact.replica for fact in facts_of(list(decision.commits), Assigned)]


def test_a_later_placement_of_a_round_sees_the_claims_of_the_earlier(mesh: Mesh):
    a, b = mesh.log.node("a", 2 * GIB), mesh.log.node("b", 2 * GIB)
    mesh.log.model("toy", spec(2 * GIB), replicas=3)
    mesh.settle()
    assert {a, b, None} == {mesh.where(ONE), mesh.where(TWO), mesh.where(THREE)}
    assert "unplaceable" == mesh.fleet.replicas[THREE].state


def test_no_room_is_said_once(mesh: Mesh):
    mesh.log.node("a", GIB)
    mesh.log.model("toy", spec(2 * GIB), replicas=1)
    (fact,) = facts_of(mesh.settle(), Unplaceable)
    assert "no node can take it; the nearest, a, has no device with 2.00 GiB free (at most 1.00 GiB)" == fact.reason
    assert {"has no device with 2.00 GiB free": 1} == fact.receipt.refusals
    for _ in range(5):
        mesh.now += 61
        assert [] == mesh.decide()


def test_a_replica_is_placed_by_the_profile_that_the_mesh_has_of_its_engine_by_now(mesh: Mesh):
    # given a node whose profile of an engine is another than the one that the mesh was told of
    nodes = BUILTIN["simulated"].model_copy(update={"name": "told"})
    wrong = nodes.model_copy(update={"serves": ("rerank",)})
    id = mesh.log.node("a", 80 * GIB)
    hardware = mesh.fleet.nodes[id].hardware
    assert hardware is not None
    backend = Backend(engine="told", version="1", vendors=("nvidia",), profile=nodes.digest)
    mesh.log.add(machine(id), Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1"))
    mesh.log.add(MESH, EngineProfileSet(profile=wrong))
    mesh.log.model("toy", spec(engine="told"), replicas=1)
    (told,) = facts_of(mesh.settle(), Unplaceable)
    assert {"has another profile of told than the mesh": 1} == told.receipt.refusals
    # when the mesh is told of the node's own
    mesh.log.add(MESH, EngineProfileSet(profile=nodes))
    # then, without another look at the clock
    assert 1 == len(facts_of(mesh.settle(), Placed))
    assert id == mesh.where(ONE)


def test_another_reason_is_said_but_not_within_a_minute(mesh: Mesh):
    a = mesh.log.node("a", GIB)
    mesh.log.model("toy", spec(2 * GIB), replicas=1)
    mesh.settle()
    mesh.log.add(node(a), Cordoned())
    mesh.now += 10
    assert [] == mesh.decide()
    mesh.now += 61
    (fact,) = facts_of(mesh.settle(), Unplaceable)
    assert {"is cordoned": 1} == fact.receipt.refusals


FOUND = FileFound(
    inspection=InspectionId("i-1"),
    source="path:/m",
    size=1,
    weights=Weights(format="gguf", weight_bytes=1, kv_bytes_per_token=1),
)


@pytest.mark.parametrize(
    "wake", ["joined", "labelled", "uncordoned", "healthy", "pressure", "file", "freed", "removed"]
)
def test_a_capacity_event_wakes_a_replica_without_a_place(mesh: Mesh, wake: str):
    log = mesh.log
    a = log.node("a", 4 * GIB)
    wanted = spec(3 * GIB)
    if wake == "labelled":
        wanted = spec(3 * GIB, selector={"zone": "1"})
    elif wake == "uncordoned":
        log.add(node(a), Cordoned())
    elif wake == "healthy":
        log.add(node(a), WentOffline(silent_for=9))
    elif wake == "pressure":
        log.add(machine(a), PressureChanged(device=0, bytes=2 * GIB))
    elif wake == "file":
        wanted = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", weights=FOUND.weights)
    elif wake in ("freed", "removed"):
        log.model("other", spec(3 * GIB), replicas=1)
        mesh.settle()
    else:
        wanted = spec(6 * GIB)
    log.model("toy", wanted, replicas=1)
    mesh.settle()
    assert "unplaceable" == mesh.fleet.replicas[ONE].state
    assert [] == mesh.decide()
    match wake:
        case "joined":
            log.node("b", 8 * GIB)
        case "labelled":
            log.add(node(a), Labelled(labels={"zone": "1"}))
        case "uncordoned":
            log.add(node(a), Uncordoned())
        case "healthy":
            log.add(node(a), Healthy())
        case "pressure":
            log.add(machine(a), PressureChanged(device=0, bytes=0))
        case "file":
            log.add(machine(a), FOUND)
        case "freed":
            other = ReplicaId("m-other-1")
            log.retire(other)
            mesh.settle()
            assert mesh.where(ONE) is None
            log.add(run(a, other), Stopped(epoch=1, why="retired"))
        case _:
            log.add(node(a), Removed(why="sold"))
            log.node("b", 8 * GIB)
    mesh.settle()
    assert mesh.where(ONE) is not None


def test_a_replica_that_is_wanted_where_others_wait_already_is_told_at_once_that_there_is_no_room(mesh: Mesh):
    mesh.log.node("a", GIB)
    mesh.log.model("toy", spec(2 * GIB), replicas=1)
    mesh.settle()
    mesh.log.scale(TOY, 1)
    assert [replica(TWO)] == [commit.aggregate for commit in mesh.settle()]


def test_what_could_not_change_is_looked_at_once_a_minute(mesh: Mesh):
    mesh.log.node("a", GIB)
    mesh.log.model("toy", spec(2 * GIB), replicas=1)
    mesh.settle()
    ((_, group),) = mesh.state.waiting
    next_looks: list[float] = []
    for mesh.now in (1010.0, 1059.9, 1060.0, 1070.0):
        assert [] == mesh.decide()
        next_looks.append(group.look_at)
    assert [1060.0, 1060.0, 1120.0, 1120.0] == next_looks


def test_what_was_not_appended_is_decided_again(mesh: Mesh):
    mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=2)
    mesh.log.model("large", spec(99 * GIB), replicas=1)
    lost = mesh.decide()
    assert lost == mesh.decide()
    assert [ONE, TWO] == [fact.replica for fact in facts_of(mesh.settle(), Assigned)]


def test_an_assignment_that_races_a_drain_loses_and_goes_elsewhere(mesh: Mesh):
    a, b = mesh.log.node("a", 2 * GIB), mesh.log.node("b", 4 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    (decision,) = mesh.decide()
    assert node(a) == decision.commits[1].aggregate
    mesh.log.add(node(a), Draining(why="admin", deadline_s=5))
    with pytest.raises(Exception, match="stands at"):
        mesh.log.take([decision])
    mesh.settle()
    assert b == mesh.where(ONE)


@pytest.mark.parametrize("end", ["scaled", "deleted"])
def test_a_retired_replica_is_unassigned_and_keeps_its_claim_until_it_stopped(mesh: Mesh, end: str):
    a = mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.settle()
    mesh.log.add(run(a, ONE), Loading(epoch=1, incarnation=Incarnation("i")))
    if end == "scaled":
        mesh.log.retire(ONE)
    else:
        mesh.log.add(model(TOY), Deleted())
    cause = mesh.log.commits[-1].cause
    (commit,) = mesh.settle()
    expected = "not wanted" if end == "scaled" else "the model was deleted"
    assert (Unassigned(replica=ONE, deadline_s=30.0, why=expected),) == commit.facts
    assert cause == commit.cause
    assert {0: GIB} == mesh.fleet.claims(a)
    mesh.log.add(run(a, ONE), Stopped(epoch=1, why="retired"))
    assert {} == mesh.fleet.claims(a)
    assert [] == mesh.settle()


@pytest.mark.parametrize(("waited", "left"), [(0, 77), (70, 7), (78, 0)])
def test_what_is_left_of_a_draining_nodes_own_deadline_counts(mesh: Mesh, waited: float, left: float):
    a = mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.settle()
    mesh.log.add(node(a), Draining(why="admin", deadline_s=77))
    mesh.now = mesh.log.commits[-1].at + waited
    mesh.log.retire(ONE)
    (fact,) = facts_of(mesh.settle(), Unassigned)
    assert left == fact.deadline_s


def test_all_of_a_group_ends_with_the_drain_of_one_of_its_nodes(mesh: Mesh):
    nodes = assign_group(mesh)
    mesh.log.add(node(nodes[1]), Draining(why="admin", deadline_s=12))
    mesh.now = mesh.log.commits[-1].at + 2
    mesh.log.retire(ONE)
    assert [10, 10] == [fact.deadline_s for fact in facts_of(mesh.settle(), Unassigned)]


def test_an_evicted_replica_leaves_its_node(mesh: Mesh):
    mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.settle()
    mesh.log.add(replica(ONE), Evicted(why="made room for another"))
    (fact,) = facts_of(mesh.settle(), Unassigned)
    assert (ONE, "made room for another") == (fact.replica, fact.why)


def assign_group(mesh: Mesh) -> list[NodeId]:
    """Replica 1 over two nodes."""
    nodes = [mesh.log.node(name, 8 * GIB) for name in "ab"]
    mesh.log.model("toy", spec(), replicas=1)
    members = tuple(
        Member(node=id, rank=rank, devices=(DeviceClaim(index=0, bytes=GIB),)) for rank, id in enumerate(nodes)
    )
    receipt = Receipt(
        position=0, policy="", policy_digest="", seed=0, trigger="", decided_at=0, refusals={}, candidates=()
    )
    for id in nodes:
        fact = Assigned(
            replica=ONE, model=TOY, model_name="toy", revision=1, digest="d", epoch=1, members=members, spec=spec()
        )
        mesh.log.add(node(id), fact)
    mesh.log.add(replica(ONE), Placed(model=TOY, revision=1, epoch=1, members=members, receipt=receipt))
    return nodes


def test_a_groups_nodes_are_unassigned_each_once(mesh: Mesh):
    nodes = assign_group(mesh)
    mesh.log.retire(ONE)
    mesh.log.add(node(nodes[0]), Unassigned(replica=ONE, deadline_s=1, why="by another scheduler"))
    (commit,) = mesh.settle()
    assert node(nodes[1]) == commit.aggregate
    assert "stopping" == mesh.fleet.replicas[ONE].state


def test_a_replica_retired_before_it_was_placed_goes_nowhere(mesh: Mesh):
    mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=2)
    mesh.log.retire(ONE)
    assert [TWO] == [fact.replica for fact in facts_of(mesh.settle(), Assigned)]


def test_placing_and_retiring_on_one_node_take_two_rounds(mesh: Mesh):
    a = mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.settle()
    mesh.log.retire(ONE)
    mesh.log.scale(TOY, 1)
    (decision,) = mesh.decide()
    assert [node(a)] == [commit.aggregate for commit in decision.commits]
    mesh.log.take([decision])
    mesh.settle()
    assert a == mesh.where(TWO)


def test_a_gone_node_gets_nothing_and_a_lost_replica_is_not_moved_by_the_scheduler(mesh: Mesh):
    a = mesh.log.node("a", 2 * GIB)
    mesh.log.node("b", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.settle()
    assert a == mesh.where(ONE)
    mesh.log.add(node(a), WentOffline(silent_for=9))
    assert [] == mesh.settle()
    assert "lost" == mesh.fleet.replicas[ONE].state
    mesh.log.scale(TOY, 1)
    mesh.settle()
    assert "n-b" == mesh.where(TWO)


def test_an_unservable_revision_is_not_tried_until_it_is_retried(mesh: Mesh):
    mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.log.add(model(TOY), Unservable(revision=1, reason="bad file"))
    assert [] == mesh.settle()
    mesh.log.add(model(TOY), Retried())
    assert [ONE] == [fact.replica for fact in facts_of(mesh.settle(), Assigned)]


def test_a_refused_recipe_is_assigned_no_more_and_what_served_before_is(mesh: Mesh):
    a = mesh.log.node("a", 8 * GIB, vendor="cpu")
    reported = mesh.fleet.nodes[a].hardware
    assert reported is not None
    backends = mesh.fleet.nodes[a].backends
    old, new = (
        BackendVariant(vendor="cpu", package="simulated", version=each, requirements=(f"simulated=={each}",), disk=1)
        for each in "12"
    )
    made = InstalledBackend(name="s", engine="simulated", vendor="cpu", version="1", recipe=old.digest)
    said = Reported(
        hardware=reported,
        backends=backends,
        builtins=(),
        agent_version="1",
        installs=Installs(),
        environments=(made,),
    )
    mesh.log.add(machine(a), said)
    mesh.log.add(MESH, BackendSet(recipe=BackendRecipe(engine="simulated", variants=(old,))))
    mesh.log.model("toy", spec(), replicas=1)
    assert [old] == [fact.backend for fact in facts_of(mesh.settle(), Assigned)]
    fact = Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1")
    mesh.log.add(run(a, ONE), fact)
    # when another one is the mesh's, it is tried
    mesh.log.add(MESH, BackendSet(recipe=BackendRecipe(engine="simulated", variants=(new,))))
    mesh.log.scale(TOY, 1)
    assert [new] == [fact.backend for fact in facts_of(mesh.settle(), Assigned)]
    # when it is refused, the ranking that was made for it counts no more
    mesh.log.add(model(TOY), Unservable(revision=1, reason="it crashed", recipe=new.digest))
    mesh.log.scale(TOY, 1)
    assert [old] == [fact.backend for fact in facts_of(mesh.settle(), Assigned)]


def test_a_claim_that_cannot_be_computed_is_said_once_with_its_reason(mesh: Mesh):
    mesh.log.node("a", 8 * GIB)
    source = PathSource(path="/m")
    mesh.log.model("toy", ModelSpec(source=source, engine="llama.cpp"), replicas=1)
    (fact,) = facts_of(mesh.settle(), Unplaceable)
    assert fact.reason.startswith("its memory can't be computed")
    mesh.now += 61
    assert [] == mesh.settle()


def test_nothing_is_decided_about_suspects(mesh: Mesh):
    a, b = mesh.log.node("a", 2 * GIB), mesh.log.node("b", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=2)
    (decision,) = mesh.decide(suspects=[node(a), replica(ONE)])
    assert [replica(TWO), node(b)] == [commit.aggregate for commit in decision.commits]
    assert [] == mesh.decide(suspects=[model(TOY)])


def test_placements_come_in_batches_of_32(mesh: Mesh):
    mesh.log.node("a", *[80 * GIB] * 8)
    mesh.log.model("toy", spec(), replicas=40)
    (decision,) = mesh.decide()
    assert 32 + 1 == len(decision.commits)
    mesh.log.take([decision])
    (decision,) = mesh.decide()
    assert 8 + 1 == len(decision.commits)


def test_no_more_replicas_are_retired_in_a_round_than_a_batch_holds():
    mesh = Mesh(Rules(batch=2))
    mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=3)
    mesh.settle()
    mesh.log.retire(ONE, TWO, THREE)
    (decision,) = mesh.decide()
    assert [ONE, TWO] == [fact.replica for fact in facts_of(list(decision.commits), Unassigned)]


def test_what_can_not_be_retired_yet_keeps_nobody_else(mesh: Mesh):
    a, b = mesh.log.node("a", GIB), mesh.log.node("b", GIB)
    mesh.log.model("toy", spec(), replicas=2)
    mesh.settle()
    assert {ONE: a, TWO: b} == {id: mesh.where(id) for id in (ONE, TWO)}
    mesh.log.retire(ONE, TWO)
    (decision,) = mesh.decide(suspects=[node(a)])
    assert [node(b)] == [commit.aggregate for commit in decision.commits]


def assigned_with(note: int) -> list[Commit]:
    """What a scheduler says of a model whose spec has a note of so many letters."""
    mesh = Mesh()
    mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(engine_args={"memory_bytes": GIB, "note": "x" * note}), replicas=1)
    return mesh.settle()


def test_an_assignment_that_fills_a_commit_is_made_and_a_larger_one_is_refused():
    empty = max(len(encode(commit)) for commit in assigned_with(0))
    fills = MAX_COMMIT_BYTES - empty
    assert 1 == len(facts_of(assigned_with(fills - 1), Assigned))
    (refused,) = facts_of(assigned_with(fills + 1), Unplaceable)
    assert "shorten the spec" in refused.reason


def test_a_round_ends_with_a_batch_of_placements_that_must_wait_for_the_next():
    mesh = Mesh(Rules(batch=2))
    mesh.log.node("a", 8 * GIB)
    for name in ("toy", "second", "third"):
        mesh.log.model(name, spec(), replicas=1)
    mesh.log.model("large", spec(99 * GIB), replicas=1)
    (decision,) = mesh.decide()
    assert "placed" == decision.why, "of the large one, which comes later, nothing is said yet"
    assert ["m-large-1"] == [commit.aggregate.key for commit in mesh.settle() if facts_of([commit], Unplaceable)]


def test_a_commit_takes_no_more_than_its_facts_are_counted_for():
    facts = tuple(Unassigned(replica=id, deadline_s=1, why="x") for id in (ONE, TWO, THREE))
    commit = Commit(node(NodeId("n-a")), facts, None, Cause(CorrelationId("c")))
    assert len(encode(commit)) <= len("[]") + sum(map(size_of, facts)) <= len(encode(commit)) + 1


def test_a_commit_stays_below_its_limit(mesh: Mesh):
    mesh.log.node("a", *[80 * GIB] * 8)
    args: dict[str, Any] = {"memory_bytes": GIB, "note": "x" * 5000}
    mesh.log.model("toy", spec().model_copy(update={"engine_args": args}), replicas=32)
    commits = mesh.settle()
    assert 32 == len(facts_of(commits, Assigned))
    for commit in commits:
        encode(commit)


def test_a_rollouts_new_revision_may_share_the_node_of_the_old_one(mesh: Mesh):
    a = mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(strategy="spread"), replicas=1)
    mesh.settle()
    mesh.log.model("toy", spec(strategy="spread"), replicas=1)
    mesh.settle()
    assert (a, a) == (mesh.where(ONE), mesh.where(TWO))


def test_a_spread_model_goes_to_the_node_that_joins_fourth(mesh: Mesh):
    for name in "abc":
        mesh.log.node(name, 8 * GIB)
    mesh.log.model("toy", spec(strategy="spread"), replicas=4)
    mesh.settle()
    four = ReplicaId("m-toy-4")
    assert 3 == len({mesh.where(id) for id in (ONE, TWO, THREE)})
    assert "unplaceable" == mesh.fleet.replicas[four].state
    d = mesh.log.node("d", 8 * GIB)
    mesh.settle()
    assert d == mesh.where(four)


def test_a_ready_run_changes_nothing_for_the_scheduler(mesh: Mesh):
    a = mesh.log.node("a", 8 * GIB)
    mesh.log.model("toy", spec(), replicas=1)
    mesh.settle()
    fact = Ready(epoch=1, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1")
    mesh.log.add(run(a, ONE), fact)
    assert [] == mesh.settle()


def test_every_placement_is_explained_as_it_was_decided(mesh: Mesh):
    for name in "abc":
        mesh.log.node(name, 4 * GIB)
    mesh.log.model("toy", spec(), replicas=6)
    mesh.log.model("wide", spec(3 * GIB, strategy="spread"), replicas=3)
    mesh.settle()
    for id in mesh.fleet.replicas:
        answers = explain_decision(mesh.log.commits, id).answers
        candidates = [answer for answer in answers if answer.refusal is None]
        said = [fact for commit in mesh.log.commits if commit.aggregate == replica(id) for fact in commit.facts]
        decision = said[-1]
        assert isinstance(decision, Placed | Unplaceable)
        recorded = [(c.node, c.score, c.devices) for c in decision.receipt.candidates]
        assert recorded == [(o.node, o.score, o.devices) for o in candidates][:8], id
        assert 3 == len(answers)
