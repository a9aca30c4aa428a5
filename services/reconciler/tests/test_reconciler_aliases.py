"""Aliases: what is accepted, what is refused with which sentence, and that a name is one thing."""

import pytest
from weft_contracts import subjects
from weft_contracts.aliases import MOST_ALIASES, AliasRule, AliasTarget
from weft_contracts.commit import Recorded
from weft_contracts.facts.name import Aliased, Claimed, Released
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.ids import ModelId
from weft_reconciler.domain.decide import decide
from weft_testing.hand_log import GuardLost

from .story import Story, simulated


@pytest.fixture
def story() -> Story:
    """Two models are there: `local` and `cloud`."""
    story = Story()
    story.node("a")
    for name in ("local", "cloud"):
        story.deploy(name, simulated())
    story.settle()
    return story


def rejection(story: Story, request: Recorded) -> tuple[int, str]:
    answer = story.answer(request)
    assert isinstance(answer, Rejected)
    return answer.status, answer.reason


def targets(story: Story, **weights: int) -> tuple[AliasTarget, ...]:
    return tuple(AliasTarget(model=story.model(name).id, weight=weight) for name, weight in weights.items())


def set_alias(story: Story, name: str, rule: AliasRule = "weights", **weights: int) -> Recorded:
    request = story.alias(name, rule, targets(story, **weights))
    story.settle()
    return request


def said_of(story: Story, name: str) -> list[object]:
    return list(story.log.facts(subjects.name("model", name)))


def test_an_alias_is_one_fact_on_its_name(story: Story) -> None:
    request = set_alias(story, "chat", local=80, cloud=20)

    assert Fulfilled(result={"alias": "chat"}) == story.answer(request)
    assert [Aliased(name="chat", rule="weights", targets=targets(story, local=80, cloud=20))] == said_of(story, "chat")


def test_the_same_alias_again_changes_nothing_and_another_one_replaces_it(story: Story) -> None:
    set_alias(story, "chat", local=1, cloud=1)
    again = set_alias(story, "chat", local=1, cloud=1)
    assert isinstance(story.answer(again), Fulfilled)
    assert 1 == len(said_of(story, "chat"))

    set_alias(story, "chat", "order", cloud=1)

    assert "order" == story.state.fleet.aliases["chat"].rule
    assert targets(story, cloud=1) == story.state.fleet.aliases["chat"].targets


def test_a_model_s_name_is_refused_to_an_alias(story: Story) -> None:
    status, why = rejection(story, set_alias(story, "local", cloud=1))
    assert 409 == status
    assert "local is a model" in why


def test_an_alias_s_name_is_refused_to_a_model_until_it_is_removed(story: Story) -> None:
    # given
    set_alias(story, "chat", local=1, cloud=1)
    # when
    refused, tried = story.deploy("chat", simulated()), story.dry_run("chat", simulated())
    story.settle()
    # then
    for request in (refused, tried):
        status, why = rejection(story, request)
        assert 409 == status
        assert "chat is an alias of local, cloud" in why
    # when
    story.remove_alias("chat")
    story.settle()
    accepted = story.deploy("chat", simulated())
    story.settle()
    # then
    assert isinstance(story.answer(accepted), Fulfilled)
    assert [Aliased, Released, Claimed] == [type(fact) for fact in said_of(story, "chat")]
    assert {} == story.state.fleet.aliases


def test_of_a_deploy_and_an_alias_of_one_name_that_are_asked_at_once_one_is_refused(story: Story) -> None:
    alias = story.alias("chat", "weights", targets(story, local=1))
    deploy = story.deploy("chat", simulated())

    story.settle()

    outcomes = [type(story.answer(request)) for request in (alias, deploy)]
    assert {Fulfilled, Rejected} == set(outcomes)
    assert ("chat" in story.state.fleet.aliases) != (story.state.fleet.model_named("chat") is not None)


def test_a_decision_on_a_name_that_somebody_else_took_loses_its_guard(story: Story) -> None:
    story.alias("chat", "weights", targets(story, local=1))
    decisions = decide(story.state, story.clock.tick(story.log.now))
    story.log.given(subjects.name("model", "chat"), Claimed(name="chat", owner="m-other"))

    with pytest.raises(GuardLost):
        story.log.take(decisions)


def test_models_that_are_not_there_are_refused(story: Story) -> None:
    gone = story.model("cloud").id
    story.delete(gone)
    story.settle()
    for id in (gone, ModelId("m-none")):
        request = story.alias("chat", "weights", (AliasTarget(model=id),))
        story.settle()
        status, why = rejection(story, request)
        assert 422 == status
        assert f"no model has the id {id}: there are local" in why


def test_a_model_that_is_named_twice_is_refused(story: Story) -> None:
    both = targets(story, local=1)
    request = story.alias("chat", "weights", both + both)
    story.settle()
    assert (400, "local stands there twice: give each model once, with its weight") == rejection(story, request)


@pytest.mark.parametrize("name", ["", "  ", "a" * 256, "a\nb"])
def test_a_name_that_no_model_may_have_no_alias_may(story: Story, name: str) -> None:
    assert 400 == rejection(story, set_alias(story, name, local=1))[0]


def test_a_model_stays_while_an_alias_stands_for_it(story: Story) -> None:
    # given
    set_alias(story, "chat", local=1, cloud=1)
    set_alias(story, "code", local=1)
    # when
    refused = story.delete(story.model("local").id)
    story.settle()
    # then
    status, why = rejection(story, refused)
    assert 409 == status
    assert "the aliases chat, code stand for local among others" in why
    # when
    set_alias(story, "chat", cloud=1)
    story.remove_alias("code")
    story.settle()
    gone = story.delete(story.model("local").id)
    story.settle()
    # then
    assert isinstance(story.answer(gone), Fulfilled)


@pytest.mark.parametrize("first", ["delete", "alias"])
def test_of_a_removal_and_an_alias_that_cross_the_older_is_answered_first(story: Story, first: str) -> None:
    asked = {"delete": lambda: story.delete(some[0].model), "alias": lambda: story.alias("chat", "order", some)}
    some = targets(story, cloud=1)
    second = next(what for what in asked if what != first)
    older, younger = asked[first](), asked[second]()

    story.settle()

    assert isinstance(story.answer(older), Fulfilled)
    assert (422 if second == "alias" else 409) == rejection(story, younger)[0]


def test_an_alias_that_is_not_there_can_t_be_removed(story: Story) -> None:
    for name in ("nobody", "local"):
        request = story.remove_alias(name)
        story.settle()
        assert (404, f"there is no alias {name}") == rejection(story, request)


def test_there_are_so_many_aliases_and_no_more(story: Story) -> None:
    # given
    some = targets(story, local=1)
    for number in range(MOST_ALIASES):
        name = f"a{number}"
        story.log.given(subjects.name("model", name), Aliased(name=name, rule="order", targets=some))
    # when
    one_more, replaced = set_alias(story, "more", local=1), set_alias(story, "a0", cloud=1)
    # then
    assert 409 == rejection(story, one_more)[0]
    assert isinstance(story.answer(replaced), Fulfilled)
