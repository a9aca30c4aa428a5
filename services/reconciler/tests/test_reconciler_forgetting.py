"""What the reconciler doesn't remember: what ended, and what the log can't account for."""

import pytest
from weft_contracts import subjects
from weft_contracts.facts.model import Scaled
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.run import Failed
from weft_contracts.ids import replica_id

from .story import Story, simulated


@pytest.fixture
def story() -> Story:
    """Two nodes, and replica 1 of model m, which wants one, ready on a."""
    story = Story()
    story.node("a", "b")
    story.deploy("m", simulated())
    story.settle()
    story.ready(1, "a")
    story.settle()
    return story


def test_failures_and_retries_of_a_deleted_model_are_forgotten(story: Story) -> None:
    id = story.model().id
    story.fail(1, "a", permanent=True)
    story.settle()
    story.retry(id)
    story.settle()
    story.fail(2, "a")
    assert {id} == set(story.state.failures.by_model) == set(story.state.retried)

    story.delete(id)
    story.settle()

    assert ({}, {}) == (story.state.failures.by_model, story.state.retried)


def test_that_a_replica_served_or_was_unloaded_is_forgotten_when_it_is_retired(story: Story) -> None:
    gone = story.replica(1).id
    story.unload("m", "a")
    story.settle()
    assert (True, True) == (gone in story.state.served, gone in story.state.unload_deadlines.by_replica)

    story.ready(2, "b")
    story.settle()

    assert {story.replica(2).id} == story.state.served
    assert {} == story.state.unload_deadlines.by_replica


def test_who_avoids_what_is_forgotten_when_it_is_retired_or_its_model_deleted(story: Story) -> None:
    id = story.model().id
    story.fail(1, "a")
    story.settle()
    assert {id: {story.replica(2).id: {story.id("a")}}} == story.state.failures.avoided

    story.fail(2, "b", permanent=True)
    story.settle()
    assert {} == story.state.failures.avoided

    story.retry(id)
    story.settle()
    story.fail(3, "b")
    story.settle()
    assert {id} == set(story.state.failures.avoided)

    story.delete(id)
    story.settle()

    assert {} == story.state.failures.avoided


def test_a_failure_of_a_revision_that_the_log_lacks_is_not_remembered(story: Story) -> None:
    model = story.model()
    story.log.given(subjects.model(model.id), Scaled(revision=9, add=(replica_id(model.id, 2),), why=""))
    assert 9 == story.replica(2).revision
    beside = next(fact for fact in story.log.facts() if isinstance(fact, Assigned))
    story.say("a", beside.model_copy(update={"replica": story.replica(2).id, "revision": 9}))

    story.run(2, "a", Failed(epoch=beside.epoch, reason="out of memory", permanent=False, starts=3))

    assert "failed" == story.replica(2).runs[story.id("a")].phase
    assert {} == story.state.failures.by_model
