"""How many replicas and where, asked for field by field: a revision that differs in that alone."""

from typing import Any

import pytest
from weft_contracts.digest import revision_digest
from weft_contracts.facts.request import Fulfilled, Rejected

from .story import Story, path, simulated


@pytest.fixture
def story() -> Story:
    """Model m wants one on nodes with a label, and its replica is ready on a."""
    story = Story()
    story.node("a", "b", labels={"gpu": "yes"})
    story.deploy("m", simulated(1, 2, selector={"gpu": "yes"}, concurrency=3))
    story.settle()
    story.ready(1, "a")
    story.settle()
    return story


def test_what_is_not_said_stays_and_what_runs_stays_where_it_is(story: Story) -> None:
    asked = story.schedule(max_replicas=0)
    story.settle()

    closing = story.answer(asked)
    assert isinstance(closing, Fulfilled)
    assert {"model": story.model().id, "revision": "2"} == closing.result
    before, after = story.accepted()
    assert before.spec.model_copy(update={"max_replicas": 0}) == after.spec
    assert before.digest == after.digest
    assert [1] == story.numbers()


def test_two_who_change_different_fields_at_once_lose_nothing_of_each_other(story: Story) -> None:
    story.schedule(min_replicas=2)
    story.schedule(max_replicas=4)
    story.settle()

    spec = story.model().spec
    assert (2, 4) == (spec.min_replicas, spec.max_replicas)
    assert 3 == story.model().revision


def test_the_same_again_changes_nothing(story: Story) -> None:
    asked = story.schedule(min_replicas=1, selector={"gpu": "yes"}, spread_all=False)
    story.settle()

    closing = story.answer(asked)
    assert isinstance(closing, Fulfilled)
    assert 1 == story.model().revision == int(closing.result["revision"])


def test_all_nodes_sets_the_numbers_aside(story: Story) -> None:
    story.schedule(spread_all=True)
    story.settle()

    spec = story.model().spec
    assert (1, 1, True) == (spec.min_replicas, spec.max_replicas, spec.spread_all)
    assert [1, 2] == story.numbers()


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        ({"min_replicas": 3}, 400, "max_replicas 2 is below min_replicas 3: raise it, or set it to 0"),
        ({"max_replicas": 1001}, 400, "1001 replicas are more than the 1000"),
        ({"selector": {"!gpu": "yes"}}, 400, "the selector !gpu: yes can't be met"),
        ({"selector": {"": "yes"}}, 400, "an empty label name"),
        ({"selector": {"a": "b" * 20_000}}, 400, "the spec takes"),
        ({"spread_all": True, "min_replicas": 1}, 400, "spread_all goes with neither"),
        ({"spread_all": True, "max_replicas": 0}, 400, "spread_all goes with neither"),
    ],
)
def test_what_can_t_be_meant_is_refused(story: Story, told: dict[str, Any], status: int, words: str) -> None:
    asked = story.schedule(**told)
    story.settle()

    refused = story.answer(asked)
    assert isinstance(refused, Rejected)
    assert status == refused.status
    assert words in refused.reason
    assert 1 == story.model().revision


@pytest.mark.parametrize("told", [{"min_replicas": 2}, {"max_replicas": 2}])
def test_numbers_of_a_model_on_all_nodes_are_refused_until_it_is_on_all_no_more(
    story: Story, told: dict[str, Any]
) -> None:
    story.schedule(spread_all=True)
    refused = story.schedule(**told)
    story.settle()
    answer = story.answer(refused)
    assert isinstance(answer, Rejected)
    assert (409, True) == (answer.status, "spread_all: false" in answer.reason)

    story.schedule(spread_all=False, min_replicas=2, max_replicas=2)
    story.settle()

    assert (2, False) == (story.model().spec.min_replicas, story.model().spec.spread_all)


def test_a_model_that_isn_t_there_has_no_scheduling(story: Story) -> None:
    story.delete(story.model().id)
    asked = story.schedule(min_replicas=2)
    story.settle()

    refused = story.answer(asked)
    assert isinstance(refused, Rejected)
    assert 404 == refused.status


def test_a_digest_says_nothing_of_all_nodes_and_older_specs_read_as_before() -> None:
    spec = path("/m")
    assert "spread_all" not in spec.model_dump(mode="json")
    assert revision_digest(spec) == revision_digest(spec.model_copy(update={"spread_all": True}))
