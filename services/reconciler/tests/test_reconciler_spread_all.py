"""A replica on each node that matches: no more than one a node, and each node that joins or leaves counts."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from weft_contracts.facts.node import Cordoned, Labelled, Uncordoned
from weft_contracts.facts.request import Rejected
from weft_fleet import ReplicaView

from .story import Story, simulated


def labelled(story: Story, *names: str) -> None:
    story.node(*names, labels={"gpu": "yes"})


def serve_everywhere(story: Story, nodes: str) -> None:
    """Every wanted replica without a place gets the next of these nodes that has none, and is ready there."""
    there = {member.node for view in story.wanted() for member in view.members}
    free = [node for node in nodes if story.id(node) not in there]
    for view in story.wanted():
        if view.placed is None and free:
            story.ready(view.number, free.pop(0))
    story.settle()


def on(story: Story) -> list[str]:
    return sorted(member.node.removeprefix("n-") for view in story.wanted() for member in view.members)


@pytest.fixture
def story() -> Story:
    """Three nodes that match and one that doesn't; model m is on each of the three."""
    story = Story()
    labelled(story, "a", "b", "c")
    story.node("x")
    story.deploy("m", simulated(spread_all=True, selector={"gpu": "yes"}))
    story.settle()
    serve_everywhere(story, "abc")
    return story


def test_of_three_nodes_that_match_each_has_one_and_a_fourth_that_joins_gets_one(story: Story) -> None:
    assert ["a", "b", "c"] == on(story)

    labelled(story, "d")
    story.settle()
    serve_everywhere(story, "d")

    assert ["a", "b", "c", "d"] == on(story)
    assert "4 wanted, 3 there" == story.scaled()[-1].why


def test_a_node_that_starts_to_match_gets_one_and_one_that_ceases_loses_its_own(story: Story) -> None:
    story.say("x", Labelled(labels={"gpu": "yes"}))
    story.settle()
    serve_everywhere(story, "x")
    assert ["a", "b", "c", "x"] == on(story)

    story.say("b", Labelled(labels={"gpu": None}))
    story.settle()

    assert ["a", "c", "x"] == on(story)
    assert "m is wanted on all nodes that match, and b lacks the label gpu=yes" == story.scaled()[-1].why


@pytest.mark.parametrize("how", ["offline", "removed", "drained"])
def test_a_node_that_leaves_takes_its_own_away_and_no_other_gets_it(story: Story, how: str) -> None:
    {"offline": story.lose, "removed": story.remove, "drained": story.drain}[how]("b")
    story.pass_time(120)

    assert ["a", "c"] == on(story)
    assert [1, 2, 3][::2] == story.numbers()


def test_a_node_that_returns_gets_one_again(story: Story) -> None:
    story.lose("b")
    story.pass_time(120)

    story.find("b")
    story.settle()

    assert [1, 3, 4] == story.numbers()


def test_a_cordoned_node_keeps_its_own_and_gets_none(story: Story) -> None:
    story.say("b", Cordoned(why="admin"))
    labelled(story, "d")
    story.say("d", Cordoned(why="admin"))
    story.settle()

    assert ["a", "b", "c"] == on(story)


def test_a_model_of_one_replica_is_spread_over_the_nodes_that_lack_it() -> None:
    story = Story()
    story.node("a", "b")
    story.deploy("m", simulated())
    story.settle()
    story.ready(1, "a")
    story.settle()

    story.schedule(spread_all=True)
    story.settle()

    assert [1, 2] == story.numbers()
    assert (story.id("a"),) == story.scaled()[-1].avoid, "it could go where one is that runs as it"


def test_two_on_one_node_are_one_too_many(story: Story) -> None:
    labelled(story, "d")
    story.settle()

    story.ready(4, "a")
    story.settle()

    assert ["a", "b", "c"] == on(story)
    assert [1, 2, 3, 5] == story.numbers()


def test_where_one_failed_it_is_tried_again_later_and_not_elsewhere(story: Story) -> None:
    story.fail(2, "b")
    story.settle()
    assert [1, 3] == story.numbers()

    story.pass_time(3700)

    assert [1, 3, 4] == story.numbers()


def test_a_new_revision_is_rolled_out_without_fewer_than_before(story: Story) -> None:
    story.deploy("m", simulated(spread_all=True, selector={"gpu": "yes"}, context_tokens=512))
    story.settle()
    assert [1, 2, 3, 4] == story.numbers()

    for number, node in ((4, "a"), (5, "b"), (6, "c")):
        story.ready(number, node)
        story.settle()
        ready = [view for view in story.wanted() if view.state == "ready"]
        assert len(ready) >= 3

    assert [4, 5, 6] == story.numbers()


def test_back_to_a_number_the_others_go(story: Story) -> None:
    story.schedule(spread_all=False)
    story.settle()

    assert [1] == story.numbers()


def test_it_can_t_be_unloaded_from_a_node_that_matches(story: Story) -> None:
    asked = story.unload("m", "a")
    story.settle()

    refused = story.answer(asked)
    assert isinstance(refused, Rejected)
    assert 409 == refused.status
    assert refused.reason.startswith("m is wanted on all nodes that match: give a a label")


def test_numbers_beside_it_are_refused() -> None:
    story = Story()
    story.node("a")
    asked = story.deploy("m", simulated(2, spread_all=True))
    story.settle()

    refused = story.answer(asked)
    assert isinstance(refused, Rejected)
    assert "spread_all goes with neither min_replicas (2) nor max_replicas (2): leave both out" == refused.reason


def test_a_model_on_many_nodes_shrinks_and_ends_by_commits_that_are_small_enough(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft_reconciler.domain.replicas.RETIRED_AT_ONCE", 2)
    for node in "abc":
        story.say(node, Labelled(labels={"gpu": None}))
    story.settle()
    assert [] == story.numbers()
    assert 2 == max(len(fact.retire) for fact in story.scaled())

    for node in "abc":
        story.say(node, Labelled(labels={"gpu": "yes"}))
    story.settle()
    before = len(story.scaled())
    story.delete(story.model().id)
    story.settle()

    assert before == len(story.scaled()), "the deletion names each replica"
    assert [] == [view for view in story.state.fleet.replicas.values() if view.wanted]


NODES = "abcd"
HAPPENINGS = ("label", "unlabel", "lose", "find", "drain", "resume", "cordon", "uncordon", "fail", "plain", "spread")


def happen(story: Story, what: str, node: str) -> None:
    """Something befalls a node or the model; a scheduler places what waits, one on a node, and all that is placed
    becomes ready."""
    match what:
        case "label" | "unlabel":
            story.say(node, Labelled(labels={"gpu": "yes" if what == "label" else None}))
        case "lose" | "find" | "drain" | "resume":
            {"lose": story.lose, "find": story.find, "drain": story.drain, "resume": story.resume}[what](node)
        case "cordon" | "uncordon":
            story.say(node, Cordoned(why="admin") if what == "cordon" else Uncordoned())
        case "fail":
            there = [view for view in story.wanted() if [story.id(node)] == [each.node for each in view.members]]
            for view in there[:1]:
                story.fail(view.number, node)
        case _:
            story.schedule(spread_all=what == "spread")
    story.pass_time(60)
    for _ in range(2 * len(NODES)):
        if not any(place_one(story, view) for view in story.wanted() if view.placed is None):
            break
        story.settle()


def place_one(story: Story, view: ReplicaView) -> bool:
    taken = {member.node for each in story.wanted() for member in each.members}
    for node in NODES:
        known = story.state.fleet.nodes[story.id(node)]
        free = story.id(node) not in taken and story.id(node) not in view.avoid
        if free and known.takes_replicas and known.labels.get("gpu") == "yes":
            story.ready(view.number, node)
            return True
    return False


@example(steps=[("plain", "a"), ("drain", "a"), ("fail", "b")])  # what replaces it waits for a place, and avoids b
@given(steps=st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.sampled_from(NODES)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_whatever_befalls_nodes_each_that_matches_ends_with_one_and_none_with_two(
    steps: list[tuple[str, str]],
) -> None:
    story = Story()
    labelled(story, "a", "b")
    story.node("c", "d")
    story.deploy("m", simulated(spread_all=True, selector={"gpu": "yes"}))
    story.settle()

    for what, node in [("label", "a"), *steps, ("spread", "a")]:
        happen(story, what, node)
        assert len(on(story)) == len(set(on(story)))
    if story.unservable():
        return  # it failed on as many nodes as there are: nothing more is tried
    story.pass_time(3700)  # until no failure counts any more
    happen(story, "spread", "a")

    known = {node: story.state.fleet.nodes[story.id(node)] for node in NODES}
    matching = {node for node, view in known.items() if view.labels.get("gpu") == "yes"}
    taking = {node for node in matching if known[node].takes_replicas}
    keeping = {node for node in matching if known[node].cordoned and known[node].presence == "healthy"}
    assert taking <= set(on(story)) <= taking | keeping
    assert len(story.numbers()) == len(on(story)), "one waits for a place that there isn't"
