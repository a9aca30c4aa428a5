"""A replica over several nodes: ready when every rank is, broken when one ended, anew under the next epoch."""

import pytest
from weft_contracts.facts.layout import Layout
from weft_contracts.facts.node import Assigned, WentOffline
from weft_contracts.facts.replica import Placed, Restarted
from weft_contracts.facts.run import Failed, Loading, Ready, RunFact, Stopped
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import node, replica, run
from weft_fleet import ReplicaView
from weft_testing.fleet_log import FleetLog

A, B = NodeId("n-a"), NodeId("n-b")
BIG, ONE = ModelId("m-big"), ReplicaId("m-big-1")
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
MEMBERS = tuple(Member(node=id, rank=rank, devices=(DeviceClaim(index=0, bytes=5),)) for rank, id in enumerate((A, B)))
RECEIPT = Receipt(
    position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0, refusals={}, candidates=()
)


class Group(FleetLog):
    """Replica 1 of a model, over nodes a and b."""

    def __init__(self, members: tuple[Member, ...] = MEMBERS) -> None:
        super().__init__()
        self.node("a", 10)
        self.node("b", 10)
        self.model("big", SPEC, replicas=1)
        self.members = members
        self.assign(1)
        self.add(replica(ONE), Placed(model=BIG, revision=1, epoch=1, members=members, receipt=RECEIPT))

    def assign(self, epoch: int) -> None:
        fact = Assigned(
            replica=ONE,
            model=BIG,
            model_name="big",
            revision=1,
            digest="d",
            epoch=epoch,
            members=self.members,
            spec=SPEC,
        )
        for member in self.members:
            self.add(node(member.node), fact)

    def said(self, id: NodeId, *facts: RunFact) -> None:
        for fact in facts:
            self.add(run(id, ONE), fact)

    @property
    def view(self) -> ReplicaView:
        return self.fleet.replicas[ONE]

    @property
    def broken(self) -> bool:
        """By the list, which the view bears out."""
        assert bool(self.view.broken) == (ONE in self.fleet.broken)
        return ONE in self.fleet.broken


def loading(epoch: int = 1) -> Loading:
    return Loading(epoch=epoch, incarnation=Incarnation(f"i-{epoch}"))


def ready(epoch: int = 1) -> Ready:
    return Ready(epoch=epoch, incarnation=Incarnation(f"i-{epoch}"), port=1, engine="simulated", engine_version="1")


ENDED = Stopped(epoch=1, why="exited", detail="killed")


@pytest.fixture
def group() -> Group:
    """With both ranks ready."""
    group = Group()
    group.said(A, loading(), ready())
    assert "loading" == group.view.state
    group.said(B, loading(), ready())
    assert "ready" == group.view.state
    return group


@pytest.mark.parametrize("why", ["exited", "shutdown"])
def test_a_group_without_a_rank_is_broken_until_it_starts_anew(group: Group, why: str) -> None:
    assert not group.broken
    group.said(B, ENDED.model_copy(update={"why": why}))
    assert group.broken
    assert [B] == [each.node for each in group.view.broken]
    # when
    group.assign(2)
    group.add(replica(ONE), Restarted(epoch=2, why="rank 1 ended"))
    # then nothing is known of any rank, and both claims stand
    assert (False, 2, {}, "placed") == (group.broken, group.view.epoch, group.view.runs, group.view.state)
    assert "rank 1 ended" == group.view.restarted
    assert [{0: 5}, {0: 5}] == [group.fleet.claims(id) for id in (A, B)]


def test_a_word_of_an_earlier_epoch_counts_for_nothing(group: Group) -> None:
    group.said(B, ENDED)
    group.assign(2)
    group.add(replica(ONE), Restarted(epoch=2, why="rank 1 ended"))
    group.said(A, ready(), ENDED)
    assert {} == group.view.runs
    group.said(A, loading(2), ready(2))
    group.said(B, loading(2), ready())
    assert "loading" == group.view.state
    group.said(B, ready(2))
    assert "ready" == group.view.state


def test_a_group_that_failed_for_good_or_is_not_wanted_is_not_broken(group: Group) -> None:
    group.said(A, ENDED)
    group.said(B, Failed(epoch=1, reason="bad", permanent=True, starts=4))
    assert not group.broken
    group = Group()
    group.said(A, loading(), ENDED)
    assert group.broken
    group.retire(ONE)
    assert not group.broken


def test_the_list_of_broken_groups_follows_every_word_of_a_run(group: Group) -> None:
    group.said(A, Failed(epoch=1, reason="bad", permanent=False, starts=4))
    assert not group.broken
    group.said(A, ENDED)
    assert group.broken
    group.said(A, Failed(epoch=1, reason="bad", permanent=False, starts=4))
    assert not group.broken


def test_a_rank_that_starts_by_itself_mends_the_group(group: Group) -> None:
    group.said(A, ENDED)
    assert group.broken
    group.said(A, loading())
    assert not group.broken


def test_a_replica_on_one_node_starts_again_there_and_is_never_broken() -> None:
    alone = Group(MEMBERS[:1])
    alone.said(A, loading(), ENDED)
    assert ("stopped", False) == (alone.view.state, alone.broken)


def test_a_group_with_a_silent_node_is_lost(group: Group) -> None:
    group.add(node(B), WentOffline(silent_for=9))
    assert ("lost", frozenset({B})) == (group.view.state, group.view.gone)


def test_another_layout_runs_as_another_revision_though_it_answers_the_same(group: Group) -> None:
    group.model("big", SPEC.model_copy(update={"layout": Layout(tensor_parallel=2)}), digest="big-1")
    model = group.fleet.models[BIG]
    assert not model.of(1).runs_as(model.of(2))
    group.model("big", SPEC, digest="big-1")
    model = group.fleet.models[BIG]
    assert model.of(1).runs_as(model.of(3))
