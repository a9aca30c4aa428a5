"""A model without replicas until one is asked for; and how sizes stand beside rollouts, losses and new bounds."""

import pytest
from weft_contracts import subjects
from weft_contracts.facts.model import Scaled, Sized
from weft_contracts.facts.replica import Evicted
from weft_contracts.facts.request import ActivationRequested, Fulfilled, Rejected
from weft_contracts.ids import RequestId

from .elastic import MINUTES, all_ready, an_elastic_model
from .story import simulated


def test_a_minimum_of_0_may_go_to_none_and_nothing_is_replaced_meanwhile() -> None:
    story = an_elastic_model(0, 2, ready=0)
    assert [] == story.numbers(), "nobody asked for one"
    story.activate()
    story.settle()
    story.ready(1, "a")

    story.serve(6 * MINUTES)

    assert [(0, 1), (1, 0)] == story.sizes()
    assert [] == story.numbers()
    story.serve(20 * MINUTES)
    assert 2 == len(story.sizes())


def test_a_request_wakes_a_model_that_sleeps_once() -> None:
    story = an_elastic_model(0, 2, ready=0)
    first, second = story.activate(), story.activate()

    story.settle()

    assert [(0, 1)] == story.sizes()
    assert [1] == story.numbers()
    assert Fulfilled(result={"model": story.model().id}) == story.answer(first) == story.answer(second)
    assert "1 wanted, 0 there: a request waits for it" == story.scaled()[-1].why


def test_a_request_wakes_nothing_where_the_model_is_gone_or_can_not_be_served() -> None:
    story = an_elastic_model(0, 2, ready=0)
    model = story.model()
    story.activate()
    story.settle()
    story.fail(1, "a", "no such argument", permanent=True)
    story.settle()
    story.serve(60)
    given_up = story.activate()
    story.settle()
    refused = story.answer(given_up)
    assert isinstance(refused, Rejected)
    assert (409, "m can't be served: no such argument") == (refused.status, refused.reason)

    story.delete(model.id)
    story.settle()
    late = story.log.given(subjects.request(RequestId("q-late")), ActivationRequested(model=model.id))
    story.settle()
    refused = story.answer(late)
    assert isinstance(refused, Rejected)
    assert 404 == refused.status


def test_what_ended_for_another_model_is_not_replaced_before_somebody_asks() -> None:
    story = an_elastic_model(0, 2, ready=0)
    story.activate()
    story.settle()
    story.ready(1, "a")
    story.settle()
    replica = story.replica(1)
    told = {"why": "idle", "waiting": "m-x-1", "model": "m-x", "members": replica.members, "until": 9.0}
    story.log.given(subjects.replica(replica.id), Evicted.model_validate(told))

    story.settle()

    assert [] == story.numbers()
    assert f"{replica.id} was evicted" == story.scaled()[-1].why
    story.serve(MINUTES)
    assert [] == story.numbers()
    story.activate()
    story.settle()
    assert [2] == story.numbers()


def test_one_that_loads_for_long_is_not_idle_before_it_could_serve() -> None:
    story = an_elastic_model(0, 2, ready=0)
    story.activate()
    story.settle()
    story.place(1, "a")

    story.serve(30 * MINUTES)
    assert [(0, 1)] == story.sizes()

    story.ready(1, "a")
    story.serve(6 * MINUTES)
    assert [(0, 1), (1, 0)] == story.sizes()


def test_idle_counts_from_the_request_that_woke_it() -> None:
    story = an_elastic_model(0, 2, ready=0)
    story.serve(20 * MINUTES)
    story.activate()
    story.settle()
    story.ready(1, "a")
    story.serve(4.5 * MINUTES)
    assert [(0, 1)] == story.sizes()


def test_a_lost_replica_of_a_grown_model_is_replaced() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1)
    all_ready(story)
    story.lose("b")

    story.serve(60, running=1)

    assert [1, 2, 3] == story.numbers()
    story.ready(3, "c")
    story.settle()
    assert [1, 3] == story.numbers()


def test_a_new_revision_takes_over_as_many_as_there_were_and_none_goes_before_others_serve() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=1)
    all_ready(story)
    assert [1, 2] == story.numbers()

    story.deploy("m", simulated(1, 4, concurrency=2, context_tokens=2048))
    story.settle()
    assert [1, 2, 3] == story.numbers()
    story.ready(3, "c")
    story.settle()
    assert 2 == sum(view.state == "ready" for view in story.wanted())
    all_ready(story)

    assert [3, 4] == story.numbers()
    assert {2} == {view.revision for view in story.wanted()}


def test_a_new_revision_of_a_model_that_sleeps_starts_nothing_until_it_is_asked() -> None:
    story = an_elastic_model(0, 2, ready=0)
    story.activate()
    story.settle()
    story.ready(1, "a")
    story.serve(6 * MINUTES)
    assert [] == story.numbers()

    story.deploy("m", simulated(0, 2, concurrency=4))
    story.serve(60)
    assert [] == story.numbers()

    story.activate()
    story.settle()
    assert {1, 2} >= {view.revision for view in story.wanted()}
    assert any(view.revision == 2 for view in story.wanted())


def test_a_deploy_with_one_number_ends_what_was_decided_by_demand() -> None:
    story = an_elastic_model(1, 4)
    story.serve(5, running=2, waiting=3)
    all_ready(story)
    assert 2 == len(story.wanted())

    story.deploy("m", simulated(1, 1, concurrency=2))
    story.settle()
    assert 1 == len(story.wanted())
    assert story.model().size is None


@pytest.mark.parametrize("least", [0, 1])
def test_what_was_deployed_with_more_before_goes_down_one_by_one_and_not_at_once(least: int) -> None:
    story = an_elastic_model(3, 3)
    story.deploy("m", simulated(least, 4, concurrency=2))
    story.settle()
    assert [1, 2, 3] == story.numbers()

    story.serve(5.5 * MINUTES)
    assert [(3, 2)] == story.sizes()
    assert 2 == len(story.wanted())


def test_replicas_end_through_scaled_and_by_no_other_fact() -> None:
    story = an_elastic_model(0, 2, ready=0)
    story.activate()
    story.settle()
    story.ready(1, "a")
    facts = story.serve(6 * MINUTES)
    assert [Sized, Scaled] == [type(fact) for fact in facts]
