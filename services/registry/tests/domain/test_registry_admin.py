"""What admins do with nodes: reject, cordon, label, cap and remove them; and what outlives a node's return."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.name import Released
from weft_contracts.facts.node import (
    Approved,
    Capped,
    Cordoned,
    Healthy,
    Labelled,
    Rejected,
    Removed,
    Unassigned,
    Uncordoned,
    WentOffline,
)
from weft_contracts.facts.request import (
    CordonRequested,
    Fulfilled,
    LabelsRequested,
    RejectionRequested,
    RemovalRequested,
    ReplicaCapRequested,
    UncordonRequested,
    VramBudgetRequested,
)
from weft_contracts.facts.request import Rejected as Refused
from weft_contracts.facts.values import Caps, VramBudget
from weft_contracts.ids import NodeId, ReplicaId
from weft_registry.domain.labels import MAX_LABELS
from weft_registry.domain.state import RegistryState

from .registry_story import Story, assigned, node

ONE = node(1)


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def pending(story: Story) -> Story:
    """Node 1 waits for approval."""
    story.join(1, story.token(approves=False))
    return story


@pytest.fixture
def member(story: Story) -> Story:
    """Node 1 is approved, and says of itself that its disk is slow."""
    story.join(1, story.token(), labels={"disk": "slow"})
    return story


def tell(story: Story, fact: Fact) -> Fact:
    return story.answered(story.ask(fact))


def refusal(outcome: Fact) -> tuple[int, str]:
    assert isinstance(outcome, Refused)
    return outcome.status, outcome.reason


def facts(story: Story, kind: type[Fact]) -> list[Fact]:
    return [fact for fact in story.log.facts(subjects.node(ONE)) if isinstance(fact, kind)]


def assign(story: Story, number: int = 1) -> ReplicaId:
    id = ReplicaId(f"m-toy-{number}")
    story.log.given(subjects.node(ONE), assigned(ONE, id))
    return id


# rejecting


def test_a_pending_node_is_rejected_with_a_reason(pending: Story) -> None:
    assert Fulfilled(result={"node": ONE}) == tell(pending, RejectionRequested(node=ONE, why="not ours"))
    assert [Rejected(why="not ours")] == facts(pending, Rejected)
    assert ("rejected", False) == (pending.view(1).state, pending.view(1).approved)


@pytest.mark.parametrize("approves", [False, True])
def test_no_token_brings_a_rejected_node_back(pending: Story, approves: bool) -> None:
    tell(pending, RejectionRequested(node=ONE, why="not ours"))
    status, reason = refusal(pending.join(1, pending.token("another", approves=approves)))
    assert (403, True) == (status, "not ours" in reason)
    assert "rejected" == pending.view(1).state
    # nor its speaking
    pending.speaking = {1}
    assert [] == pending.live(60)


def test_an_admins_approval_lifts_a_rejection(pending: Story) -> None:
    tell(pending, RejectionRequested(node=ONE, why="not ours"))
    assert isinstance(pending.approve(ONE), Fulfilled)
    assert (True, None) == (pending.view(1).approved, pending.view(1).rejected)


def test_only_a_node_that_waits_can_be_rejected(pending: Story) -> None:
    tell(pending, RejectionRequested(node=ONE, why="not ours"))
    assert (409, True) == (lambda r: (r[0], "rejected already: not ours" in r[1]))(
        refusal(tell(pending, RejectionRequested(node=ONE, why="really")))
    )
    pending.approve(ONE)
    assert (409, True) == (lambda r: (r[0], "remove it instead" in r[1]))(
        refusal(tell(pending, RejectionRequested(node=ONE, why="late")))
    )


# cordons


def test_a_cordon_is_set_and_lifted_with_its_reason_and_twice_is_once(member: Story) -> None:
    for fact in (CordonRequested(node=ONE, why="new fan"), CordonRequested(node=ONE, why="again")):
        assert isinstance(tell(member, fact), Fulfilled)
    assert [Cordoned(why="new fan")] == facts(member, Cordoned)
    assert member.view(1).cordoned
    for fact in (UncordonRequested(node=ONE, why="turns"), UncordonRequested(node=ONE)):
        assert isinstance(tell(member, fact), Fulfilled)
    assert [Uncordoned(why="turns")] == facts(member, Uncordoned)
    assert not member.view(1).cordoned


# labels


def labels(story: Story, how: str, **labels: str | None) -> Fact:
    return tell(story, LabelsRequested.model_validate({"node": ONE, "how": how, "labels": labels}))


def borne(story: Story) -> dict[str, str]:
    """The node's labels but the automatic one that any node bears."""
    return {key: value for key, value in story.view(1).labels.items() if key != "node.name"}


def test_labels_are_changed_one_by_one_and_what_the_node_says_is_overridden(member: Story) -> None:
    labels(member, "merge", zone="a", disk="fast")
    assert {"zone": "a", "disk": "fast"} == borne(member)
    labels(member, "merge", disk=None)
    assert {"zone": "a"} == borne(member)


def test_all_labels_are_replaced_by_those_that_are_given(member: Story) -> None:
    labels(member, "merge", zone="a")
    labels(member, "replace", rack="r1")
    assert {"rack": "r1"} == borne(member)
    # and a new one of the worker's own is merged
    member.join(1, member.token(), labels={"disk": "slow", "net": "10g"})
    assert {"rack": "r1", "net": "10g"} == borne(member)


def test_labels_given_back_are_what_the_node_says_of_itself(member: Story) -> None:
    labels(member, "merge", zone="a", disk=None)
    labels(member, "return")
    assert ({"disk": "slow"}, {}) == (borne(member), member.view(1).set_labels)


def test_a_label_taken_away_that_only_an_admin_had_set_leaves_no_trace(member: Story) -> None:
    labels(member, "merge", zone="a")
    labels(member, "merge", zone=None)
    assert {} == member.view(1).set_labels
    member.join(1, member.token(), labels={"zone": "b"})
    assert {"zone": "b"} == borne(member)


def test_labels_that_are_so_already_make_no_event(member: Story) -> None:
    labels(member, "merge", zone="a")
    assert isinstance(labels(member, "merge", zone="a"), Fulfilled)
    assert [Labelled(labels={"zone": "a"})] == facts(member, Labelled)


def test_too_many_or_too_long_labels_are_refused_with_400(member: Story) -> None:
    for wrong in ({f"k{n}": "" for n in range(MAX_LABELS)}, {"k" * 64: ""}, {"k": "v" * 64}):
        assert 400 == refusal(labels(member, "merge", **wrong))[0]
    assert {"disk": "slow"} == borne(member)


def test_a_labels_name_has_one_letter_at_least_and_63_at_most(member: Story) -> None:
    assert isinstance(labels(member, "merge", **{"k": "", "n" * 63: "v" * 63}), Fulfilled)
    assert 400 == refusal(labels(member, "merge", **{"": "v"}))[0]


# caps


def test_caps_are_set_one_by_one_and_given_back(member: Story) -> None:
    budget = VramBudget(share=0.8)
    tell(member, ReplicaCapRequested(node=ONE, replicas_per_model=2))
    tell(member, VramBudgetRequested(node=ONE, budget=budget))
    assert Caps(replicas_per_model=2, vram_budget=budget) == member.view(1).caps
    # they outlive the node's return, and what it says itself
    member.join(1, member.token(), caps=Caps(replicas_per_model=9))
    assert Caps(replicas_per_model=2, vram_budget=budget) == member.view(1).caps
    # until they are given back
    tell(member, ReplicaCapRequested(node=ONE, replicas_per_model=None))
    tell(member, VramBudgetRequested(node=ONE, budget=None))
    assert Caps(replicas_per_model=9) == member.view(1).caps
    # and twice is once
    assert isinstance(tell(member, VramBudgetRequested(node=ONE, budget=None)), Fulfilled)
    assert 4 == len(facts(member, Capped))


# removal


def test_a_node_without_replicas_is_removed_and_its_name_is_free(member: Story) -> None:
    assert Fulfilled(result={"node": ONE, "state": "removed"}) == tell(member, RemovalRequested(node=ONE, why="sold"))
    assert [Removed(why="sold")] == facts(member, Removed)
    assert [Released()] == member.log.facts(subjects.name("node", "node-1"))[-1:]
    # another machine may bear it
    assert isinstance(member.join(2, member.token(), name="node-1"), Fulfilled)
    # and the removed one can't come back, by no token and no other name
    for name in ("node-1", "other"):
        status, reason = refusal(member.join(1, member.token("good"), name=name))
        assert (403, True) == (status, "needs a new key" in reason)
    assert {ONE: member.log.now} == member.state.removals


def test_a_node_that_runs_replicas_is_not_removed_unless_forced(member: Story) -> None:
    id = assign(member)
    status, reason = refusal(tell(member, RemovalRequested(node=ONE)))
    assert (409, True, True) == (status, id in reason, "force" in reason)
    assert not member.view(1).removed
    assert isinstance(tell(member, RemovalRequested(node=ONE, force=True)), Fulfilled)
    assert (True, ()) == (member.view(1).removed, member.state.fleet.replicas_on(ONE))


def test_a_node_that_is_gone_and_was_replaced_everywhere_is_removed_without_force(member: Story) -> None:
    id = assign(member)
    member.log.given(subjects.node(ONE), Healthy(), WentOffline(silent_for=9))
    assert 409 == refusal(tell(member, RemovalRequested(node=ONE)))[0]
    member.log.given(subjects.node(ONE), Unassigned(replica=id, deadline_s=1, why="replaced"))
    assert isinstance(tell(member, RemovalRequested(node=ONE)), Fulfilled)


def test_a_removal_that_races_a_placement_loses_and_is_refused(member: Story) -> None:
    # given a removal decided about
    request = member.ask(RemovalRequested(node=ONE))
    decided = member.decided()
    # when a replica is assigned meanwhile
    assign(member)
    # then the guard lets the removal not through, and the next answer is no
    with pytest.raises(AssertionError, match="stands at"):
        member.log.take(decided)
    assert 409 == refusal(member.answered(request))[0]


@pytest.mark.parametrize(
    "fact",
    [
        RejectionRequested(node=NodeId("n-none"), why="x"),
        CordonRequested(node=NodeId("n-none")),
        UncordonRequested(node=NodeId("n-none")),
        LabelsRequested(node=NodeId("n-none"), how="return"),
        ReplicaCapRequested(node=NodeId("n-none"), replicas_per_model=1),
        VramBudgetRequested(node=NodeId("n-none"), budget=None),
        RemovalRequested(node=NodeId("n-none")),
    ],
    ids=lambda fact: fact.type,
)
def test_what_is_asked_about_nobody_or_a_removed_node_is_refused_with_404(member: Story, fact: Any) -> None:
    assert 404 == refusal(tell(member, fact))[0]
    tell(member, RemovalRequested(node=ONE))
    assert 404 == refusal(tell(member, fact.model_copy(update={"node": ONE})))[0]


def test_a_reason_longer_than_a_sentence_is_refused_with_400(member: Story) -> None:
    assert 400 == refusal(tell(member, CordonRequested(node=ONE, why="x" * 501)))[0]


def test_whoever_returns_keeps_id_approval_and_what_admins_said(member: Story) -> None:
    # given
    labels(member, "merge", zone="a", disk="fast")
    tell(member, CordonRequested(node=ONE, why="fan"))
    tell(member, ReplicaCapRequested(node=ONE, replicas_per_model=2))
    before = member.view(1)
    # when
    member.join(1, member.token(approves=False), labels={"disk": "slow", "rack": "r"})
    # then
    after = member.view(1)
    assert (before.id, True, True, before.caps) == (after.id, after.approved, after.cordoned, after.caps)
    assert {"zone": "a", "disk": "fast", "rack": "r"} == borne(member)
    assert 1 == len(facts(member, Approved))


# whatever is asked

_LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.one_of(st.sampled_from(["1", "2"]), st.none()))
_ASKED = st.one_of(
    st.builds(RejectionRequested, node=st.just(ONE), why=st.just("no")),
    st.builds(CordonRequested, node=st.just(ONE)),
    st.builds(UncordonRequested, node=st.just(ONE)),
    st.builds(LabelsRequested, node=st.just(ONE), how=st.sampled_from(["merge", "replace", "return"]), labels=_LABELS),
    st.builds(ReplicaCapRequested, node=st.just(ONE), replicas_per_model=st.one_of(st.none(), st.integers(0, 2))),
    st.builds(RemovalRequested, node=st.just(ONE), force=st.booleans()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(_ASKED, st.sampled_from(["join", "approve", "assign"])), max_size=12))
def test_whatever_admins_ask_each_is_answered_once_and_who_is_removed_stays_so(steps: list[Any]) -> None:
    # given
    story = Story()
    plain, good = story.token("plain", approves=False), story.token("good")
    story.join(1, plain)
    removed = False
    for step in steps:
        # when
        if step == "join":
            story.join(1, good)
        elif step == "approve":
            story.approve(ONE)
        elif step == "assign":
            if not removed:
                assign(story)
        else:
            request = story.ask(step)
            outcome = story.answered(request)
            assert 2 == len(story.log.facts(request))
            if isinstance(step, LabelsRequested) and isinstance(outcome, Fulfilled) and step.how == "replace":
                wanted = {key: value for key, value in step.labels.items() if value is not None}
                assert wanted == story.view(1).labels
        # then
        view = story.view(1)
        assert removed <= view.removed
        assert not (view.rejected is not None and view.approved)
        removed = view.removed
        again = RegistryState()
        for commit in story.log.commits:
            again.apply(commit)
        assert story.state == again
