"""Which lists a replica stands in through its life, and what follows from its node's fate."""

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.model import Scaled
from weft_contracts.facts.node import Assigned, Expired, Healthy, Removed, Unassigned, Unhealthy, WentOffline
from weft_contracts.facts.replica import Evicted, Placed, Unplaceable
from weft_contracts.facts.run import Loading, Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import MESH, machine, model, node, replica, run
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
ID, ONE, TWO = ModelId("m-toy"), ReplicaId("m-toy-1"), ReplicaId("m-toy-2")
A, B = NodeId("n-a"), NodeId("n-b")
RECEIPT = Receipt(
    position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)
UNASSIGNED = Unassigned(replica=ONE, deadline_s=1, why="not wanted")
STOPPED = Stopped(epoch=1, why="retired")
LOADING = Loading(epoch=1, incarnation=Incarnation("i"))


def ready(epoch: int = 1) -> Ready:
    return Ready(epoch=epoch, incarnation=Incarnation("i"), port=1, engine="simulated", engine_version="1")


class Story:
    """Two nodes and a model with a replica that waits."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.log.node("a", 1 << 30)
        self.log.node("b", 1 << 30)
        self.log.model("toy", SPEC, replicas=1)
        self.fleet = self.log.fleet

    def members(self, *nodes: NodeId) -> tuple[Member, ...]:
        claims = (DeviceClaim(index=0, bytes=7),)
        return tuple(Member(node=node, rank=rank, devices=claims) for rank, node in enumerate(nodes))

    def assign(self, at: NodeId, *nodes: NodeId, epoch: int = 1, id: ReplicaId = ONE) -> None:
        more = {"model_name": "toy", "digest": "d", "spec": SPEC, "members": self.members(*nodes)}
        fact = {"replica": id, "model": ID, "revision": 1, "epoch": epoch, **more}
        self.log.add(node(at), Assigned.model_validate(fact))

    def place(self, *nodes: NodeId, epoch: int = 1) -> None:
        for at in nodes:
            self.assign(at, *nodes, epoch=epoch)
        placed = {"model": ID, "revision": 1, "epoch": epoch, "members": self.members(*nodes), "receipt": RECEIPT}
        self.log.add(replica(ONE), Placed.model_validate(placed))

    def lists(self) -> list[str]:
        """Those in which the replica stands."""
        view = self.fleet.models[ID]
        found = {
            "waiting": self.fleet.waiting,
            "leaving": self.fleet.leaving,
            "closed": self.fleet.closed,
            "its model's": view.replicas,
            "ready": view.ready,
        }
        return [name for name, ids in found.items() if ONE in ids]


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_replica_stands_in_the_lists_of_what_it_lacks(story: Story) -> None:
    assert ["waiting", "its model's"] == story.lists()
    story.log.add(replica(ONE), Unplaceable(model=ID, revision=1, reason="no room", receipt=RECEIPT))
    assert ["waiting", "its model's"] == story.lists()
    story.place(A)
    assert ["its model's"] == story.lists()
    story.log.add(run(A, ONE), LOADING)
    assert ["its model's"] == story.lists()
    story.log.add(run(A, ONE), ready())
    assert ["its model's", "ready"] == story.lists()
    story.log.retire(ONE)
    assert ["leaving", "its model's"] == story.lists()
    story.log.add(node(A), UNASSIGNED)
    assert ["its model's"] == story.lists()
    story.log.add(run(A, ONE), STOPPED)
    assert ["closed"] == story.lists()


def test_a_replica_that_is_retired_before_it_has_a_place_is_over_at_once(story: Story) -> None:
    story.log.retire(ONE)
    assert ["closed"] == story.lists()


def test_an_evicted_replica_leaves_like_a_retired_one(story: Story) -> None:
    story.place(A)
    story.log.add(replica(ONE), Evicted(why="room for another"))
    assert ["leaving", "its model's"] == story.lists()
    story.log.add(node(A), UNASSIGNED)
    story.log.add(run(A, ONE), STOPPED)
    assert ["closed"] == story.lists()


def test_a_group_leaves_until_each_of_its_nodes_was_told_and_is_over_when_each_has_ended(story: Story) -> None:
    story.place(A, B)
    story.log.retire(ONE)
    story.log.add(node(A), UNASSIGNED)
    story.log.add(run(A, ONE), STOPPED)
    assert ["leaving", "its model's"] == story.lists()
    story.log.add(node(B), UNASSIGNED)
    assert ["its model's"] == story.lists()
    story.log.add(run(B, ONE), STOPPED)
    assert ["closed"] == story.lists()


def test_a_replica_is_retired_once_and_the_first_reason_stays(story: Story) -> None:
    story.log.add(model(ID), Scaled(revision=1, retire=(ONE,), why="too many"))
    before = story.fleet.replicas[ONE]
    story.log.add(model(ID), Scaled(revision=1, retire=(ONE, ReplicaId("m-toy-99")), why="another reason"))
    assert ("too many", before.retire_cause) == (before.retire_why, story.fleet.replicas[ONE].retire_cause)
    assert before == story.fleet.replicas[ONE]


def test_what_was_said_of_a_replica_when_it_was_added_stays_with_it(story: Story) -> None:
    story.log.now += 5
    story.log.scale(ID, 1, avoid=("n-b",))
    view = story.fleet.replicas[TWO]
    assert (2, 1, "toy-1", ("n-b",), story.log.now) == (
        view.number,
        view.revision,
        view.digest,
        view.avoid,
        view.added_at,
    )


def test_a_replica_of_a_revision_that_the_log_lacks_has_no_digest(story: Story) -> None:
    story.log.add(model(ID), Scaled(revision=9, add=(TWO,), why="wanted"))
    assert "" == story.fleet.replicas[TWO].digest


def test_a_replica_that_nobody_added_is_passed_over(story: Story) -> None:
    story.log.add(replica(TWO), Evicted(why="room"))
    assert TWO not in story.fleet.replicas


# its node's fate


def test_a_replica_is_lost_while_a_node_of_its_is_offline_and_stays_so_where_it_is_removed(story: Story) -> None:
    story.place(A, B)
    for fact, gone in (
        (Unhealthy(silent_for=5), set[NodeId]()),
        (WentOffline(silent_for=9), {A}),
        (Healthy(), set[NodeId]()),
        (Removed(why="sold"), {A}),
        (Healthy(), {A}),
    ):
        story.log.add(node(A), fact)
        assert gone == story.fleet.replicas[ONE].gone, fact.type


@pytest.mark.parametrize("fact", [WentOffline(silent_for=9), Removed(why="sold")])
def test_a_replica_that_is_placed_on_a_node_that_is_gone_is_lost_from_the_start(story: Story, fact: Fact) -> None:
    story.log.add(node(A), fact)
    story.place(A, B)
    assert {A} == story.fleet.replicas[ONE].gone
    assert "lost" == story.fleet.replicas[ONE].state


def test_a_node_that_the_log_does_not_know_is_gone(story: Story) -> None:
    story.place(A, NodeId("n-unknown"))
    assert {"n-unknown"} == story.fleet.replicas[ONE].gone


@pytest.mark.parametrize("fact", [Removed(why="sold"), Expired(waited_s=1)])
def test_a_node_that_is_out_has_no_assignments_and_claims_and_the_others_keep_theirs(story: Story, fact: Fact) -> None:
    story.place(A, B)
    story.log.add(node(A), fact)
    assert ((), (ONE,)) == (story.fleet.replicas_on(A), story.fleet.replicas_on(B))
    assert ({}, {0: 7}) == (story.fleet.claims(A), story.fleet.claims(B))


def test_a_node_that_expired_is_as_if_it_had_never_been(story: Story) -> None:
    story.log.add(node(A), Expired(waited_s=1))
    assert A not in story.fleet.nodes
    story.log.add(machine(A), PressureChanged(device=0, bytes=1))
    assert A not in story.fleet.nodes
    story.log.add(node(A), Expired(waited_s=1))
    assert [B] == list(story.fleet.nodes)


# runs and assignments


def test_a_new_assignment_forgets_its_own_nodes_run_and_not_the_others(story: Story) -> None:
    story.place(A, B)
    for at in (A, B):
        story.log.add(run(at, ONE), ready())
    story.assign(A, A, B, epoch=1)
    assert {A, B} == set(story.fleet.replicas[ONE].runs)
    story.assign(A, A, B, epoch=2)
    assert {B} == set(story.fleet.replicas[ONE].runs)


def test_a_placement_forgets_the_runs_of_other_epochs(story: Story) -> None:
    story.place(A)
    story.log.add(run(A, ONE), ready())
    story.assign(B, B, epoch=2)
    story.log.add(run(B, ONE), ready(epoch=2))
    placed = {"model": ID, "revision": 1, "epoch": 2, "members": story.members(B), "receipt": RECEIPT}
    story.log.add(replica(ONE), Placed.model_validate(placed))
    assert {B} == set(story.fleet.replicas[ONE].runs)


def test_an_assignment_that_has_no_part_for_the_node_says_nothing_of_it(story: Story) -> None:
    story.assign(A, B)
    assert () == story.fleet.replicas_on(A)
    assert story.fleet.assignment(A, ONE) is None
    assert story.fleet.assigned_sequence(A, ONE) is None


def test_an_assignment_is_known_by_the_commit_that_made_it_also_while_it_retires(story: Story) -> None:
    story.assign(A, A)
    made = story.log.commits[-1]
    story.log.add(node(A), UNASSIGNED)
    found = story.fleet.assignment(A, ONE)
    assert found is not None
    assert (made.sequence, made.cause, True) == (found.sequence, found.cause, found.retiring)
    assert made.sequence == story.fleet.assigned_sequence(A, ONE)


def test_to_unassign_what_is_not_assigned_changes_nothing(story: Story) -> None:
    story.log.add(node(A), UNASSIGNED)
    assert story.fleet.assignment(A, ONE) is None


def test_replicas_of_several_models_add_up_on_a_node_device_by_device(story: Story) -> None:
    story.assign(A, A)
    story.assign(A, A, id=TWO)
    assert ({0: 14}, {ID: 2}, 2) == (
        story.fleet.claims(A),
        story.fleet.assigned(A).models,
        story.fleet.assigned(A).replicas,
    )
    without = story.fleet.assigned(A).without(ONE)
    assert ({0: 7}, {ID: 1}, (TWO,)) == (without.claims, without.models, tuple(without.assignments))
    assert without == without.without(ONE)
    # the fleet's own is not changed by it
    assert {0: 14} == story.fleet.claims(A)


def test_what_ended_and_is_told_to_go_holds_nothing_and_takes_nothing_away_when_it_is_forgotten(story: Story) -> None:
    story.assign(A, A)
    story.assign(A, A, id=TWO)
    story.log.add(node(A), UNASSIGNED)
    story.log.add(run(A, ONE), STOPPED)
    held = story.fleet.assigned(A)
    assert ({0: 7}, {ID: 1}) == (held.claims, held.models)
    assert ({0: 7}, {ID: 1}) == (held.without(ONE).claims, held.without(ONE).models)


def test_an_assignment_of_other_size_counts_in_the_place_of_the_one_before(story: Story) -> None:
    story.assign(A, A)
    members = (Member(node=A, rank=0, devices=(DeviceClaim(index=1, bytes=5),)),)
    more = {"model_name": "toy", "digest": "d", "spec": SPEC, "members": members}
    fact = Assigned.model_validate({"replica": ONE, "model": ID, "revision": 1, "epoch": 2, **more})
    story.log.add(node(A), fact)
    assert ({1: 5}, {ID: 1}) == (story.fleet.claims(A), story.fleet.assigned(A).models)


# what changed last


def test_the_node_whose_room_changed_last_is_the_last_one(story: Story) -> None:
    story.place(A)
    placed = story.log.head - 1  # the assignment; then came the placement, which changes no node's room
    assert [(B, 6), (A, placed)] == list(story.fleet.touched.items())
    story.log.add(machine(B), PressureChanged(device=0, bytes=1))
    assert [A, B] == list(story.fleet.touched)
    story.log.add(run(A, ONE), ready())
    assert [A, B] == list(story.fleet.touched)
    story.log.add(run(A, ONE), STOPPED)
    assert [(B, story.log.head - 2), (A, story.log.head)] == list(story.fleet.touched.items())
    story.log.add(node(B), Expired(waited_s=1))
    assert (B, story.log.head) == list(story.fleet.touched.items())[-1]


# the brake


def test_the_brake_stands_from_its_setting_until_it_is_lifted(story: Story) -> None:
    assert story.fleet.brake is None
    brake = BrakeSet(silent=3, healthy_before=7)
    story.log.add(MESH, brake)
    story.log.add(node(A), Healthy())
    assert brake == story.fleet.brake
    story.log.add(MESH, BrakeLifted(why="they came back"))
    assert story.fleet.brake is None
