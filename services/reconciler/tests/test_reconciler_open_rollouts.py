"""Revisions of models that leave their number to nodes or to what there is to do: they replace the one before as a
whole, or are taken back."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from weft_contracts.facts.model import RolledBack
from weft_contracts.facts.node import Cordoned, Labelled, Uncordoned
from weft_fleet import ReplicaView
from weft_reconciler.domain.verify import verify

from .elastic import MINUTES, an_elastic_model
from .story import Story, simulated

SPREAD = simulated(spread_all=True, selector={"gpu": "yes"})
BETTER = SPREAD.model_copy(update={"context_tokens": 512})
GROWN = simulated(1, 4, concurrency=3)


def spread_over(nodes: str) -> Story:
    """Model m is on each of these nodes."""
    story = Story()
    story.node(*nodes, labels={"gpu": "yes"})
    story.deploy("m", SPREAD)
    story.settle()
    while any(place_one(story, view, nodes, 2) for view in story.wanted()):
        story.settle()
    assert 1 == story.model().established
    return story


def grown_to(size: int) -> Story:
    """Model m may have one to four; what there was to do made it as many, on nodes a, b and so on."""
    story = an_elastic_model(1, 4)
    for ready in range(1, size):
        story.serve(20, running=2 * ready, waiting=2)
        while any(place_one(story, view, "abcdef", 1) for view in story.wanted()):
            story.settle()
    story.serve(1)
    assert size == len(story.wanted())
    return story


def place_one(story: Story, view: ReplicaView, nodes: str, room: int) -> bool:
    """A replica without a place gets ready on the first node where it may go: with at most so many of the model, and
    none of its own revision."""
    if view.placed is not None:
        return False
    for node in nodes:
        there = [each for each in story.wanted() if [story.id(node)] == [member.node for member in each.members]]
        known = story.state.fleet.nodes[story.id(node)]
        beside = len(there) < room and all(each.revision != view.revision for each in there)
        matches = story.state.fleet.spec_of(view)[1].selector.items() <= known.labels.items()
        if beside and matches and known.takes_replicas and known.id not in view.avoid:
            story.ready(view.number, node)
            return True
    return False


def newest(story: Story) -> int:
    """The number of the replica that was added last."""
    return story.wanted()[-1].number


def served(story: Story, revision: int) -> list[str]:
    """The nodes on which replicas of a revision are ready."""
    return sorted(
        member.node.removeprefix("n-")
        for view in story.wanted()
        for member in view.members
        if view.state == "ready" and view.revision == revision
    )


# spread over nodes


def test_one_of_a_spread_revision_that_serves_is_not_the_whole_of_it() -> None:
    story = spread_over("abcd")
    story.deploy("m", BETTER)
    story.settle()

    story.ready(newest(story), "a")
    story.settle()

    assert (1, 4) == (story.model().established, story.model().told)
    assert (["b", "c", "d"], ["a"]) == (served(story, 1), served(story, 2)), "the one before left another node"


def test_a_spread_revision_that_serves_on_one_node_and_fails_on_three_is_taken_back() -> None:
    # given
    story = spread_over("abcd")
    story.deploy("m", BETTER)
    story.settle()
    story.ready(newest(story), "a")
    story.settle()
    # when
    for node in "bcd":
        story.fail(newest(story), node)
        story.settle()
        assert ["b", "c", "d"] == served(story, 1), "a failure of the new one took one of the old away"
    # then the kept one comes back
    assert ["out of memory"] == story.unservable()
    assert [(2, 1)] == [(fact.revision, fact.to) for fact in story.log.facts() if isinstance(fact, RolledBack)]
    story.ready(newest(story), "a")
    story.settle()
    assert (["a", "b", "c", "d"], []) == (served(story, 1), served(story, 2))


def test_where_a_spread_revision_failed_the_one_before_stays_until_it_is_tried_again() -> None:
    story = spread_over("abc")
    story.deploy("m", BETTER)
    story.settle()
    story.fail(newest(story), "a")
    story.settle()
    for node in "bc":
        story.ready(newest(story), node)
        story.settle()
    assert (["a"], ["b", "c"]) == (served(story, 1), served(story, 2))
    assert 1 == story.model().established

    story.pass_time(3700)
    story.ready(newest(story), "a")
    story.settle()

    assert ([], ["a", "b", "c"]) == (served(story, 1), served(story, 2))
    assert 2 == story.model().established


def test_a_spread_revision_that_never_serves_on_one_node_is_taken_back_in_the_end() -> None:
    story = spread_over("abc")
    story.deploy("m", BETTER)
    story.settle()
    for node in "bc":
        story.ready(newest(story), node)
        story.settle()

    for _ in range(5):
        if not story.unservable():
            story.fail(newest(story), "a")
        story.pass_time(3700)

    assert ["no more of it were ready within 14400 s"] == [each.partition(";")[0] for each in story.unservable()]


def test_a_node_that_joins_meanwhile_is_one_more_that_it_must_serve_on() -> None:
    story = spread_over("ab")
    story.deploy("m", BETTER)
    story.settle()
    story.ready(newest(story), "a")
    story.settle()
    story.node("c", labels={"gpu": "yes"})
    story.settle()
    story.ready(next(view.number for view in story.wanted() if view.placed is None), "b")
    story.settle()
    assert (1, 3) == (story.model().established, story.model().told)

    for number in [view.number for view in story.wanted() if view.placed is None]:
        if story.replica(number).wanted:
            story.ready(number, "c")
            story.settle()

    assert 2 == story.model().established
    assert ([], ["a", "b", "c"]) == (served(story, 1), served(story, 2))


@pytest.mark.parametrize("how", ["cordoned", "offline", "unlabelled"])
def test_on_a_node_that_leaves_meanwhile_it_need_not_serve(how: str) -> None:
    story = spread_over("abc")
    story.deploy("m", BETTER)
    story.settle()
    for node in "ab":
        story.ready(newest(story), node)
        story.settle()
    assert 1 == story.model().established

    match how:
        case "cordoned":
            story.say("c", Cordoned(why="admin"))
        case "offline":
            story.lose("c")
        case _:
            story.say("c", Labelled(labels={"gpu": None}))
    story.pass_time(120)

    assert 2 == story.model().established
    assert ["a", "b"] == served(story, 2)


def test_that_fewer_are_due_is_told_though_no_replica_comes_or_goes() -> None:
    story = spread_over("abc")
    story.deploy("m", BETTER)
    story.settle()
    assert 3 == story.model().told

    story.say("c", Cordoned(why="admin"))
    story.settle()

    last = story.scaled()[-1]
    assert (2, (), (), 2) == (last.revision, last.add, last.retire, last.wanted)
    assert "2 of revision 2 are to serve before it is established" == last.why


# sized by what there is to do


def test_a_sized_revision_is_established_at_its_size() -> None:
    story = grown_to(3)
    story.deploy("m", GROWN)
    story.settle()

    for node in "de":
        story.ready(newest(story), node)
        story.settle()
        assert 1 == story.model().established
    story.ready(newest(story), "f")
    story.settle()

    assert 2 == story.model().established
    assert ([], ["d", "e", "f"]) == (served(story, 1), served(story, 2))


def test_a_sized_revision_of_which_one_serves_and_others_fail_everywhere_is_taken_back() -> None:
    story = grown_to(3)
    story.deploy("m", GROWN)
    story.settle()
    story.ready(newest(story), "d")
    story.settle()

    for node in "efa":
        story.fail(newest(story), node)
        story.settle()

    assert ["out of memory"] == story.unservable()
    assert 1 == story.model().established
    story.ready(newest(story), "c")
    story.settle()
    assert (3, []) == (len(served(story, 1)), served(story, 2))


def test_a_size_that_shrinks_meanwhile_asks_for_fewer() -> None:
    story = grown_to(3)
    story.deploy("m", GROWN)
    story.settle()
    for node in "de":
        story.ready(newest(story), node)
        story.settle()
    assert 1 == story.model().established

    story.serve(5 * MINUTES + 5)

    assert (3, 2) == story.sizes()[-1]
    assert 2 == story.model().established
    assert ([], ["d", "e"]) == (served(story, 1), served(story, 2))


def test_a_size_that_grows_meanwhile_asks_for_more() -> None:
    story = grown_to(2)
    story.deploy("m", GROWN)
    story.settle()
    story.ready(newest(story), "d")
    story.settle()
    story.serve(20, running=6, waiting=5)
    assert 4 == story.sizes()[-1][1]

    story.ready(next(view.number for view in story.wanted() if view.revision == 2 and view.state != "ready"), "e")
    story.settle()

    assert (1, 4) == (story.model().established, story.model().told)


def test_a_size_does_not_grow_while_one_that_went_first_is_replaced() -> None:
    story = grown_to(2)
    story.schedule(max_surge=0, max_unavailable=1)
    story.settle()
    story.deploy("m", GROWN)
    story.settle()

    story.serve(60, running=2, waiting=5)

    assert (1, 2) == story.sizes()[-1]


# where one more has no room


@pytest.mark.parametrize("surge", [0, 1])
@pytest.mark.parametrize("kind", ["spread", "sized"])
def test_on_full_nodes_a_revision_is_rolled_out_to_its_end_one_after_another(kind: str, surge: int) -> None:
    # given
    story = spread_over("abc") if kind == "spread" else grown_to(3)
    story.schedule(max_surge=surge, max_unavailable=1)
    story.settle()
    story.deploy("m", BETTER if kind == "spread" else GROWN)
    story.settle()
    # when each node has room for one
    for _ in range(20):
        for view in story.wanted():
            if view.placed is None and not place_one(story, view, "abc", 1):
                story.find_no_place(view.number)
        story.pass_time(5)
        assert 2 <= len(served(story, 1) + served(story, 2))
    # then
    assert ([], ["a", "b", "c"]) == (served(story, 1), served(story, 2))
    assert (2, 3) == (story.model().established, len(story.wanted()))


def test_a_rollout_that_has_no_room_for_its_last_is_bounded() -> None:
    story = grown_to(3)
    story.deploy("m", GROWN)
    story.settle()
    for node in "de":
        story.ready(newest(story), node)
        story.settle()
    waits = story.wanted()[-1].id
    story.find_no_place(newest(story))

    story.pass_time(14_500)

    assert [f"no more of it were ready within 14400 s; {waits} is unplaceable: no room"] == story.unservable()


# whatever happens

NODES = "abcd"
WHAT = ("ready", "ready", "ready", "fail", "lose", "find", "cordon", "uncordon", "label", "unlabel", "deploy", "wait")
SPECS = (SPREAD, BETTER, SPREAD.model_copy(update={"context_tokens": 1024}))


def happen(story: Story, what: str, which: int) -> None:
    node = NODES[which % len(NODES)]
    match what:
        case "deploy":
            story.deploy("m", SPECS[which % len(SPECS)])
        case "label" | "unlabel":
            story.say(node, Labelled(labels={"gpu": "yes" if what == "label" else None}))
        case "lose" | "find":
            _ = story.lose(node) if what == "lose" else story.find(node)
        case "cordon" | "uncordon":
            story.say(node, Cordoned(why="admin") if what == "cordon" else Uncordoned())
        case "wait":
            story.pass_time(10 * (which + 1))
        case "fail":
            there = [view for view in story.wanted() if [story.id(node)] == [each.node for each in view.members]]
            for view in there[-1:]:
                story.fail(view.number, node)
        case _:
            any(place_one(story, view, NODES, 2) for view in story.wanted())


@given(st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 11)), max_size=20))
@example([("ready", 0), ("fail", 1), ("ready", 0), ("cordon", 3), ("ready", 0), ("ready", 0)])
@example([("unlabel", 3), ("ready", 0), ("label", 3), ("ready", 0), ("deploy", 0), ("ready", 0)])
@settings(max_examples=20, deadline=None)
def test_whatever_happens_in_a_rollout_no_node_is_left_without_one_that_had_one(history: list[tuple[str, int]]) -> None:
    story = spread_over(NODES)
    story.deploy("m", BETTER)
    story.settle()
    for what, which in history:
        before, touched = {*served(story, 1), *_served(story)}, NODES[which % len(NODES)]
        established = story.model().established
        happen(story, what, which)
        story.settle()
        model = story.model()
        if what == "deploy" or model.established != established or not model.replacing:
            continue
        lost = before - _served(story) - {touched}
        known = {node: story.state.fleet.nodes[story.id(node)] for node in lost}
        assert [] == [node for node in lost if known[node].takes_replicas and known[node].labels.get("gpu") == "yes"]
    for _ in range(6):  # all that may be had is had, and what is older than an hour is forgotten
        placed = 0
        while any(place_one(story, view, NODES, 2) for view in story.wanted()):
            story.settle()
            placed += 1
            assert placed < 40, "what is placed is retired again, for ever"
        story.sleep(3600)
        story.pass_time(100)

    model = story.model()
    assert not model.replacing or model.newest.number in model.given_up
    assert _served(story) >= {
        node
        for node in NODES
        if story.state.fleet.nodes[story.id(node)].takes_replicas
        and story.state.fleet.nodes[story.id(node)].labels.get("gpu") == "yes"
        and not model.unservable
    }
    assert [] == verify(story.log.commits).mismatches


def _served(story: Story) -> set[str]:
    return {node for revision in story.model().specs for node in served(story, revision)}
