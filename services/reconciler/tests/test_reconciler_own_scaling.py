"""A model may be sized by figures of its own; what it doesn't say is the mesh's."""

from weft_contracts.facts.model import ScalingSet, Sized
from weft_contracts.facts.request import Fulfilled

from .elastic import MINUTES, all_ready, an_elastic_model
from .story import Story


def receipts(story: Story) -> list[Sized]:
    return [fact for fact in story.log.facts() if isinstance(fact, Sized)]


def test_a_model_that_waits_for_less_is_made_smaller_sooner_and_its_receipt_says_by_what() -> None:
    story = an_elastic_model(1, 4)
    asked = story.schedule(scaling={"down_after_s": 60, "down_cooldown_s": 5})
    story.settle()
    said = story.answer(asked)
    assert isinstance(said, Fulfilled)
    assert {"model": story.model().id, "revision": "1"} == said.result
    story.serve(5, running=2, waiting=1)
    all_ready(story)

    story.serve(75)

    assert [(1, 2), (2, 1)] == story.sizes()
    policy = receipts(story)[-1].receipt.policy
    assert (60.0, 5.0, 0.3) == (policy.down_after_s, policy.down_cooldown_s, policy.spare)


def test_a_model_that_waits_for_longer_is_made_larger_later() -> None:
    story = an_elastic_model(1, 4)
    story.schedule(scaling={"up_after_s": 30})
    story.settle()

    story.serve(25, running=2, waiting=1)
    assert [] == story.sizes()
    story.serve(10, running=2, waiting=1)

    assert [(1, 2)] == story.sizes()


def test_more_to_spare_keeps_what_the_meshs_figures_would_let_go() -> None:
    story = an_elastic_model(1, 4)
    story.schedule(scaling={"spare": 0.9})
    story.settle()
    story.serve(5, running=2, waiting=1)
    all_ready(story)

    story.serve(20 * MINUTES, running=1)

    assert [(1, 2)] == story.sizes()


def test_what_is_said_is_all_of_its_own_and_nothing_is_the_meshs_again() -> None:
    story = an_elastic_model(1, 4)
    for scaling in ({"spare": 0.5}, {"up_after_s": 30}, {"up_after_s": 30}, {}):
        story.schedule(scaling=scaling)
        story.settle()

    told = [fact.own.said for fact in story.log.facts() if isinstance(fact, ScalingSet)]
    assert [{"spare": 0.5}, {"up_after_s": 30.0}, {}] == told
    assert 1 == story.model().revision
