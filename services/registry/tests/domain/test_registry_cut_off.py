"""Cutting off: who floods gets nothing new and is replaced; only an admin brings it back; the brake is not fooled."""

from typing import Literal

import pytest
from weft_contracts.facts.node import CutOff, Healthy, Resumed, WentOffline
from weft_contracts.facts.request import DrainRequested, Fulfilled, Rejected, RemovalRequested, ResumeRequested
from weft_contracts.ids import NodeId
from weft_registry.domain.failure_detector import Observations

from .registry_story import Story, node

WHY = "it sent 60,000 messages within 1.0 s"


def flooding(story: Story, *numbers: int) -> Observations:
    """Observations of nodes that are heard, and flood."""
    known = frozenset(n.id for n in story.state.fleet.nodes.values())
    return Observations(known, {}, known, floods=dict.fromkeys(map(node, numbers), WHY))


def resume(story: Story, id: NodeId, why: Literal["admin", "worker"] = "admin") -> object:
    return story.answered(story.ask(ResumeRequested(node=id, why=why)))


def test_who_floods_is_cut_off_and_lost_at_once_with_the_reason() -> None:
    story = Story()
    story.nodes(3)
    assert [CutOff(why=WHY), WentOffline(silent_for=0.0)] == story.settle(flooding(story, 2))
    view = story.view(2)
    assert ("cut_off", WHY, True, False) == (view.state, view.cut_off, view.gone, view.takes_replicas)
    # and that is said once, however long it is seen to flood, and though it is heard
    assert [] == story.settle(flooding(story, 2))
    assert [] == story.live(30)


def test_two_instances_that_see_one_flood_cut_it_off_once() -> None:
    story = Story()
    story.nodes(2)
    observations = flooding(story, 1)
    twice = story.decided(observations) + story.decided(observations)
    assert 2 == len(twice)
    (first, *_), (second, *_) = (decision.commits for decision in twice)
    assert first.guard is not None
    assert first.guard == second.guard


def test_who_is_unknown_or_cut_off_already_keeps_nobody_else_from_it() -> None:
    story = Story()
    story.nodes(2)
    story.settle(flooding(story, 1))
    assert [CutOff(why=WHY), WentOffline(silent_for=0.0)] == story.settle(flooding(story, 9, 1, 2))
    assert "cut_off" == story.view(2).state


@pytest.mark.parametrize("how", ["pending", "removed"])
def test_who_can_not_connect_is_not_cut_off(how: str) -> None:
    story = Story()
    story.join(1, story.token(approves=how != "pending"))
    if how == "removed":
        story.answered(story.ask(RemovalRequested(node=node(1))))
    assert [] == story.settle(flooding(story, 1))


def test_only_an_admin_brings_it_back_and_it_is_healthy_once_it_is_heard() -> None:
    story = Story()
    story.nodes(3)
    story.settle(flooding(story, 1))
    # its worker may ask what it likes
    for asked in (
        ResumeRequested(node=node(1), why="worker"),
        DrainRequested(node=node(1), why="worker", deadline_s=5),
    ):
        refused = story.answered(story.ask(asked))
        assert isinstance(refused, Rejected)
        assert 409 == refused.status
    joins = story.join(1, story.token("again"))
    assert isinstance(joins, Rejected)
    assert (403, "cut_off") == (joins.status, story.view(1).state)
    # when an admin does
    before = story.log.head
    assert isinstance(resume(story, node(1)), Fulfilled)
    story.live(5)
    facts = [fact for commit in story.log.commits[before:] for fact in commit.facts]
    assert [Resumed, Healthy] == [type(fact) for fact in facts if isinstance(fact, Resumed | Healthy)]
    assert ("healthy", None) == (story.view(1).state, story.view(1).cut_off)
    # and its next flood is cut off anew
    assert [CutOff, WentOffline] == [type(fact) for fact in story.settle(flooding(story, 1))]


def test_a_drain_of_its_own_that_ends_by_joining_does_not_lift_a_cut_off() -> None:
    story = Story()
    story.nodes(2)
    story.answered(story.ask(DrainRequested(node=node(1), why="worker", deadline_s=5)))
    story.settle(flooding(story, 1))
    assert isinstance(story.join(1, story.token("again")), Rejected)
    assert "cut_off" == story.view(1).state


def test_nodes_that_were_cut_off_set_no_brake_however_many() -> None:
    story = Story()
    story.nodes(4)
    story.settle(flooding(story, 1, 2))
    story.speaking -= {1, 2}
    story.live(60)
    assert story.state.fleet.brake is None
    # and two others of two that are left still do
    story.speaking -= {3, 4}
    story.live(10)
    assert story.state.fleet.brake is not None


def test_a_brake_that_a_flood_has_set_is_lifted_without_the_one_who_was_cut_off() -> None:
    story = Story()
    story.nodes(3)
    story.speaking.clear()
    story.live(6)
    assert story.state.fleet.brake is not None
    story.settle(Observations(frozenset(), {}, frozenset(map(node, (1, 2, 3))), floods={node(1): WHY}))
    story.speaking = {2, 3}
    story.live(10)
    assert story.state.fleet.brake is None
    assert ["cut_off", "healthy", "healthy"] == story.states([1, 2, 3])


def test_a_removal_ends_it_for_good() -> None:
    story = Story()
    story.nodes(2)
    story.settle(flooding(story, 1))
    assert [node(1)] == list(story.state.cut_offs)
    assert isinstance(story.answered(story.ask(RemovalRequested(node=node(1), force=True))), Fulfilled)
    assert ({}, [node(1)]) == (story.state.cut_offs, list(story.state.removals))
