"""What becomes of a superseded revision's replicas, and of the kept one's, while the next is on its way."""

import pytest
from weft_contracts import subjects
from weft_contracts.facts.mesh import BrakeSet

from .story import Story, simulated


def test_a_drain_asks_where_the_replicas_own_revision_may_run_not_where_the_next_one_may(story: Story) -> None:
    story.deploy("m", simulated(2, selector={"zone": "nowhere"}))
    story.settle()

    story.drain("a")
    story.settle()

    # revision 1 may run elsewhere: what serves waits for that
    assert {1, 2} < set(story.numbers())


@pytest.mark.parametrize("in_order", [True, False], ids=["down in order", "stopped for good"])
def test_of_a_superseded_revision_only_what_went_down_in_order_is_waited_for(story: Story, *, in_order: bool) -> None:
    story.deploy("m", simulated(2, concurrency=3))
    story.settle()
    story.ready(3, "c")
    story.settle()
    _ = story.shut_down(3, "c") if in_order else story.fail(3, "c")

    story.deploy("m", simulated(2, concurrency=5))
    story.settle()

    assert in_order == (3 in story.numbers())


def test_nothing_of_the_kept_revision_gives_way_while_nobody_knows_what_became_of_a_part_of_it(story: Story) -> None:
    story.deploy("m", simulated(2, concurrency=3))
    story.settle()
    story.log.given(subjects.MESH, BrakeSet(silent=2, healthy_before=4))
    story.lose("a")

    story.ready(3, "c")
    story.settle()

    assert {1, 2, 3} <= set(story.numbers())
