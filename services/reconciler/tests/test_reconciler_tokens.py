"""Of a model that was told how many tokens a second a replica makes, those that are made count as business, too."""

from weft_contracts.facts.model import Sized
from weft_reconciler.domain.demand_watch import DemandWatch

from .elastic import MINUTES, all_ready, an_elastic_model
from .story import Story


def a_model_that_makes(tokens_per_s: float, ready: int = 1) -> Story:
    """One to four replicas with two places each; one request leaves places to spare."""
    story = an_elastic_model(1, 4)
    story.schedule(scaling={"tokens_per_s": tokens_per_s})
    story.settle()
    while len(story.model().ready) < ready:
        story.serve(15, running=2 * len(story.model().ready), waiting=1)
        all_ready(story)
    return story


def test_with_places_left_one_more_comes_once_the_tokens_are_nine_tenths_of_what_there_can_be() -> None:
    story = a_model_that_makes(100)

    story.serve(20, running=1, tokens=89)
    assert [] == story.sizes()
    story.serve(20, running=1, tokens=90)

    assert [(1, 2)] == story.sizes()
    fact = next(fact for fact in story.log.facts() if isinstance(fact, Sized))
    why = "all were busy for 3 s: 1 requests ran at 1 with 2 places each; 90 tokens a second, where each makes 100"
    assert (why, 2) == (fact.why, fact.places)
    seen, policy = fact.receipt.seen, fact.receipt.policy
    assert (90.0, 100.0, 0.9) == (seen.tokens_per_s, policy.tokens_per_s, policy.token_share)


def test_tokens_at_all_gateways_are_added() -> None:
    story = a_model_that_makes(100)
    story.serve(20, running=0, tokens=45, gateways=("g", "h"))
    assert [(1, 2)] == story.sizes()


def test_of_a_model_that_was_told_nothing_tokens_say_nothing() -> None:
    story = an_elastic_model(1, 4)
    story.serve(60, running=1, tokens=100_000)
    assert [] == story.sizes()


def test_one_fewer_would_not_do_where_its_tokens_would_leave_too_little_to_spare() -> None:
    """0.7 of 0.9 of 100."""
    few, many = a_model_that_makes(100, ready=2), a_model_that_makes(100, ready=2)

    few.serve(7 * MINUTES, running=1, tokens=62)
    many.serve(7 * MINUTES, running=1, tokens=64)

    assert [(1, 2), (2, 1)] == few.sizes()
    assert [(1, 2)] == many.sizes()


def test_what_few_make_says_nothing_of_as_many_as_there_should_be() -> None:
    story = a_model_that_makes(100, ready=2)
    story.fail(1, "a")
    story.settle()

    story.serve(7 * MINUTES, running=1, tokens=40)

    assert [(1, 2)] == story.sizes()


def test_tokens_are_unknown_until_they_were_known_for_ten_seconds_and_then_of_those_alone() -> None:
    story = a_model_that_makes(100)
    made = story.model().id

    story.serve(10, running=1, tokens=50)
    assert story.watch.seen(made).tokens_per_s is None
    story.serve(1, running=1, tokens=50)
    assert 50 == story.watch.seen(made).tokens_per_s
    story.serve(20, running=1, tokens=70)
    assert 70 == story.watch.seen(made).tokens_per_s

    for _ in range(6):  # nothing is heard
        story.look()
        story.log.now += 1
    story.look()
    assert story.watch.seen(made).tokens_per_s is None


def test_a_replica_that_gets_ready_begins_the_count_anew() -> None:
    story = a_model_that_makes(100)
    story.serve(20, running=1, tokens=95)
    assert [(1, 2)] == story.sizes()
    all_ready(story)
    story.serve(3, running=1, tokens=95)
    assert story.watch.seen(story.model().id).tokens_per_s is None

    story.serve(5 * MINUTES, running=1, tokens=95)
    assert [(1, 2)] == story.sizes()


def test_who_begins_to_look_makes_nothing_smaller_before_it_knows_the_tokens() -> None:
    story = a_model_that_makes(100, ready=2)
    story.watch = DemandWatch()
    story.serve(305, running=1, tokens=10)
    assert [(1, 2)] == story.sizes()
    story.serve(10, running=1, tokens=10)
    assert [(1, 2), (2, 1)] == story.sizes()
