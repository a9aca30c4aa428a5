"""Claims: from `assigned` until the run's end after `unassigned`, or the node's removal."""

import pytest
from weft_contracts.facts.node import Assigned, Healthy, Removed, Unassigned, WentOffline
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Failed, Loading, Ready, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import node, replica, run
from weft_fleet import Fleet
from weft_testing.fleet_log import FleetLog, refold

GIB = 1 << 30
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": GIB})
ONE = ReplicaId("m-toy-1")
STOPPED = Stopped(epoch=1, why="retired")


def a_receipt() -> Receipt:
    return Receipt(
        position=0,
        policy="p",
        policy_digest="d",
        seed=0,
        trigger="e",
        decided_at=0.0,
        refusals={},
        candidates=(),
    )


def place(log: FleetLog, id: ReplicaId, *nodes: NodeId, epoch: int = 1, bytes: int = GIB) -> None:
    view = log.fleet.replicas[id]
    members = tuple(
        Member(node=node, rank=rank, devices=(DeviceClaim(index=0, bytes=bytes),)) for rank, node in enumerate(nodes)
    )
    _, spec = log.fleet.spec_of(view)
    for member in members:
        fact = Assigned(
            replica=id,
            model=view.model,
            model_name="toy",
            revision=view.revision,
            digest=view.digest,
            epoch=epoch,
            members=members,
            spec=spec,
        )
        log.add(node(member.node), fact, cause=view.cause)
    placed = Placed(model=view.model, revision=view.revision, epoch=epoch, members=members, receipt=a_receipt())
    log.add(replica(id), placed, cause=view.cause)


def ready(epoch: int = 1, port: int = 9000) -> Ready:
    return Ready(epoch=epoch, incarnation=Incarnation("i1"), port=port, engine="simulated", engine_version="1")


@pytest.fixture
def log() -> FleetLog:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.model("toy", SPEC, replicas=1)
    return log


A = NodeId("n-a")


def test_a_replica_claims_its_memory_from_its_assignment_on(log: FleetLog):
    assert {} == log.fleet.claims(A)
    place(log, ONE, A)
    assert {0: GIB} == log.fleet.claims(A)
    assert (ONE,) == log.fleet.replicas_on(A)
    assert "placed" == log.fleet.replicas[ONE].state


@pytest.mark.parametrize("order", ["run first", "unassigned first"])
def test_a_claim_ends_with_the_later_of_unassigned_and_the_runs_end(log: FleetLog, order: str):
    place(log, ONE, A)
    log.retire(ONE)
    retired = Unassigned(replica=ONE, deadline_s=30, why="not wanted")
    ends = [(run(A, ONE), STOPPED), (node(A), retired)]
    first, last = ends if order == "run first" else ends[::-1]
    log.add(*first)
    assert {0: GIB} == log.fleet.claims(A)
    assert "stopping" == log.fleet.replicas[ONE].state
    log.add(*last)
    assert {} == log.fleet.claims(A)
    assert "stopped" == log.fleet.replicas[ONE].state
    assert ONE in log.fleet.closed


def test_a_failed_run_ends_a_claim_like_a_stopped_one(log: FleetLog):
    place(log, ONE, A)
    log.add(run(A, ONE), Failed(epoch=1, reason="no such file", permanent=True, starts=1))
    assert "failed" == log.fleet.replicas[ONE].state
    assert {0: GIB} == log.fleet.claims(A)
    log.add(node(A), Unassigned(replica=ONE, deadline_s=0, why="failed"))
    assert {} == log.fleet.claims(A)


def test_silence_ends_no_claim_and_removal_ends_all(log: FleetLog):
    place(log, ONE, A)
    log.add(node(A), WentOffline(silent_for=9))
    assert {0: GIB} == log.fleet.claims(A)
    assert "lost" == log.fleet.replicas[ONE].state
    log.add(node(A), Healthy())
    assert "placed" == log.fleet.replicas[ONE].state
    log.add(node(A), Removed(why="sold"))
    assert {} == log.fleet.claims(A)
    assert "lost" == log.fleet.replicas[ONE].state


def test_a_process_that_starts_after_its_claim_ended_claims_again(log: FleetLog):
    place(log, ONE, A)
    log.add(run(A, ONE), Stopped(epoch=1, why="shutdown"))
    log.retire(ONE)
    log.add(node(A), Unassigned(replica=ONE, deadline_s=0, why="not wanted"))
    assert {} == log.fleet.claims(A)
    log.add(run(A, ONE), Loading(epoch=1, incarnation=Incarnation("i2")))
    assert {0: GIB} == log.fleet.claims(A)
    assert "stopping" == log.fleet.replicas[ONE].state
    log.add(run(A, ONE), STOPPED)
    assert {} == log.fleet.claims(A)


def test_a_run_counts_only_under_its_nodes_present_assignment(log: FleetLog):
    log.add(run(A, ONE), ready())
    assert {} == log.fleet.replicas[ONE].runs
    place(log, ONE, A, epoch=2)
    log.add(run(A, ONE), ready(epoch=1, port=6666))
    assert {} == log.fleet.replicas[ONE].runs
    log.add(run(A, ONE), ready(epoch=2, port=7777))
    assert 7777 == log.fleet.replicas[ONE].runs[A].port
    assert "ready" == log.fleet.replicas[ONE].state
    place(log, ONE, A, epoch=3)
    assert {} == log.fleet.replicas[ONE].runs
    assert {0: GIB} == log.fleet.claims(A)


def test_a_group_is_ready_when_every_rank_is(log: FleetLog):
    b = log.node("b", 8 * GIB)
    place(log, ONE, A, b)
    log.add(run(A, ONE), ready())
    assert "loading" == log.fleet.replicas[ONE].state
    log.add(run(b, ONE), ready())
    assert "ready" == log.fleet.replicas[ONE].state
    leader = log.fleet.replicas[ONE].leader
    assert leader is not None
    assert A == leader.node


def test_a_replica_that_is_placed_after_it_was_retired_is_there_to_be_unassigned(log: FleetLog):
    log.retire(ONE)
    assert {} == log.fleet.waiting
    assert [] == list(log.fleet.models[ModelId("m-toy")].replicas)
    place(log, ONE, A)
    assert [ONE] == list(log.fleet.leaving)
    assert [ONE] == list(log.fleet.models[ModelId("m-toy")].replicas)


def test_the_same_log_makes_the_same_fleet(log: FleetLog):
    place(log, ONE, A)
    log.add(run(A, ONE), ready())
    again = refold(log.commits)
    assert again == log.fleet
    assert again.digest() == log.fleet.digest()
    log.add(node(A), WentOffline(silent_for=9))
    assert log.fleet != again
    assert log.fleet.digest() != again.digest()


def test_a_commit_that_nobody_can_read_still_moves_its_aggregate(log: FleetLog):
    before = log.fleet.nodes[A].sequence
    recorded = log.add(node(A))
    assert recorded.sequence == log.fleet.nodes[A].sequence > before


def test_replicas_that_are_over_are_forgotten_when_enough_later_ones_are(
    log: FleetLog, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("weft_fleet.fleet.CLOSED_KEPT", 2)
    place(log, ONE, A)
    log.add(run(A, ONE), STOPPED)
    log.retire(ONE)
    log.add(node(A), Unassigned(replica=ONE, deadline_s=0, why="not wanted"))
    log.scale(ModelId("m-toy"), 2)
    two, three = ReplicaId("m-toy-2"), ReplicaId("m-toy-3")
    log.retire(two)
    assert ONE in log.fleet.replicas
    log.retire(three)
    assert {two, three} == set(log.fleet.replicas) == set(log.fleet.closed)
    assert log.fleet.assignment(A, ONE) is None


def test_an_empty_log_is_an_empty_fleet():
    assert Fleet() == refold([])
