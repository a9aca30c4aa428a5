"""Taking a model off one node."""

import pytest
from weft_contracts.facts.node import Cordoned, Draining
from weft_contracts.facts.request import Fulfilled, Rejected

from .story import Story, simulated


@pytest.fixture
def story() -> Story:
    """Three nodes, and replica 1 of model m, which wants one, ready on a."""
    story = Story()
    story.node("a", "b", "c")
    story.deploy("m", simulated())
    story.settle()
    story.ready(1, "a")
    story.settle()
    return story


def test_what_is_unloaded_is_replaced_elsewhere_first(story: Story) -> None:
    asked = story.unload("m", "a")
    story.settle()

    closing = story.answer(asked)
    assert isinstance(closing, Fulfilled)
    assert {"model": story.model().id, "node": "n-a", "replicas": story.replica(1).id} == closing.result
    assert [1, 2] == story.numbers()
    assert (story.id("a"),) == story.scaled()[-1].avoid

    story.ready(2, "b")
    story.settle()

    assert [2] == story.numbers()
    assert "m is unloaded from a; others serve" == story.scaled()[-1].why


def test_at_the_deadline_it_goes_replaced_or_not(story: Story) -> None:
    story.unload("m", "a", deadline_s=30)
    story.pass_time(25)
    assert [1, 2] == story.numbers()

    story.pass_time(10)

    assert [2] == story.numbers()


def test_where_no_minimum_asks_for_it_nothing_replaces_it() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated(1))
    story.settle()
    story.ready(1, "a")
    story.settle()
    story.deploy("m", simulated(0, 2))
    story.settle()

    story.unload("m", "a")
    story.settle()

    assert [] == story.numbers()


def test_the_only_node_that_can_run_what_must_run_keeps_it() -> None:
    story = Story()
    story.node("a")
    story.deploy("m", simulated())
    story.settle()
    story.ready(1, "a")
    story.settle()

    # one that drains takes nothing, nor does a cordoned one
    story.node("b", "c")
    story.say("b", Draining(why="worker", deadline_s=60))
    story.say("c", Cordoned(why="new fan"))

    asked = story.unload("m", "a")
    story.settle()

    closing = story.answer(asked)
    assert isinstance(closing, Rejected)
    assert (409, True) == (closing.status, "only a can run it" in closing.reason)
    assert [1] == story.numbers()


def test_a_node_that_does_not_have_it_is_as_good_as_unloaded(story: Story) -> None:
    before = len(story.scaled())

    asked = story.unload("m", "b")
    story.settle()

    closing = story.answer(asked)
    assert isinstance(closing, Fulfilled)
    assert ("", before) == (closing.result["replicas"], len(story.scaled()))


def test_a_node_that_nobody_knows_is_404(story: Story) -> None:
    asked = story.unload("m", "x")
    story.settle()

    closing = story.answer(asked)
    assert isinstance(closing, Rejected)
    assert 404 == closing.status
