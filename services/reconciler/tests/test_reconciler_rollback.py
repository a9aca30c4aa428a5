"""A revision of before is asked for again: it is the next one, rolled out as any other."""

from typing import Any

import pytest
from weft_contracts.facts.model import RolledBack
from weft_contracts.facts.request import Fulfilled, Rejected

from .story import Story, simulated

BETTER = simulated(2, concurrency=3)
BAD = simulated(2, engine_args={"fail_load": "bogus"})


@pytest.fixture(name="better")
def both_served(story: Story) -> Story:
    """Revision 2 is established in the place of revision 1."""
    story.deploy("m", BETTER)
    story.settle()
    for number, node in ((3, "c"), (4, "d")):
        story.ready(number, node)
        story.settle()
    assert 2 == story.model().established
    return story


def states(story: Story) -> list[tuple[int, str]]:
    return sorted((view.revision, view.state) for view in story.wanted())


def result(story: Story, **asked: Any) -> dict[str, str]:
    request = story.rollback(**asked)
    story.settle()
    said = story.answer(request)
    assert isinstance(said, Fulfilled), said
    return dict(said.result)


def refused(story: Story, **asked: Any) -> tuple[int, str]:
    request = story.rollback(**asked)
    story.settle()
    said = story.answer(request)
    assert isinstance(said, Rejected), said
    return said.status, said.reason


def test_the_revision_before_is_the_next_one_and_rolled_out(better: Story) -> None:
    told = result(better)

    assert {"model": better.model().id, "revision": "3", "to": "1"} == told
    assert [(2, "ready"), (2, "ready"), (3, "added")] == states(better)
    assert (better.model().of(1).digest, 8) == (better.model().digest, better.model().spec.concurrency)
    (back,) = [fact for fact in better.log.facts() if isinstance(fact, RolledBack)]
    assert (2, 1, "asked for: revision 3 is as revision 1") == (back.revision, back.to, back.why)


def test_back_and_back_again_is_forth(better: Story) -> None:
    result(better)
    for number, node in ((5, "a"), (6, "b")):
        better.ready(number, node)
        better.settle()
    assert 3 == better.model().established

    assert "2" == result(better)["to"]


def test_a_rollout_that_goes_on_is_ended_and_what_is_kept_stays_where_it_is(story: Story) -> None:
    story.deploy("m", BETTER)
    story.settle()
    assert [(1, "ready"), (1, "ready"), (2, "added")] == states(story)

    assert "1" == result(story)["to"]

    assert [(1, "ready"), (1, "ready")] == states(story)
    assert (3, 3) == (story.model().revision, story.model().established)


def test_what_cannot_be_served_is_taken_off_the_models_name(story: Story) -> None:
    story.deploy("m", BAD)
    story.settle()
    story.fail(3, "c", "bogus", permanent=True)
    story.settle()

    assert "1" == result(story)["to"]

    assert {} == story.model().given_up
    assert [(1, "ready"), (1, "ready")] == states(story)


def test_as_many_are_wanted_as_before_it(better: Story) -> None:
    better.schedule(min_replicas=3, max_replicas=5)
    better.settle()

    result(better, to=1)

    assert (3, 5) == (better.model().spec.min_replicas, better.model().spec.max_replicas)


def test_what_is_so_already_is_left_alone(better: Story) -> None:
    head = better.model().revision

    assert "2" == result(better, to=2)["revision"]

    assert head == better.model().revision


def test_a_revision_that_there_is_not_is_refused(better: Story) -> None:
    assert (404, "m has no revision 7: it has 1 to 2") == refused(better, to=7)


def test_a_model_that_never_served_otherwise_has_nothing_to_go_back_to(story: Story) -> None:
    status, why = refused(story)

    assert (409, "m has no revision before 1 that ever served: name one with `to`") == (status, why)
    assert (404, "m has no revision 2: it has 1 alone") == refused(story, to=2)


def test_a_revision_that_never_answered_is_passed_over(better: Story) -> None:
    better.deploy("m", BAD)
    better.settle()
    better.fail(5, "a", "bogus", permanent=True)
    better.settle()
    better.deploy("m", simulated(2, concurrency=5))
    better.settle()

    assert "2" == result(better)["to"]


def test_a_deleted_model_has_no_revision(better: Story) -> None:
    model = better.model().id
    better.delete(model)
    better.settle()
    better.deploy("m", BETTER)
    better.settle()
    assert better.model().id != model

    assert 409 == refused(better)[0]
