"""Placement policies that an admin tells the mesh: set, chosen, withdrawn, each where nobody is left without."""

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import PolicyChosen, PolicySet, PolicyWithdrawn
from weft_contracts.facts.model import Deleted, SpecAccepted
from weft_contracts.facts.request import (
    Fulfilled,
    PolicyChoiceRequested,
    PolicyRequested,
    PolicyWithdrawalRequested,
    Rejected,
)
from weft_contracts.ids import ModelId
from weft_contracts.policies import BUILTIN_NAMES, MOST_POLICIES, PlacementPolicy, PolicyWeights
from weft_contracts.subjects import MESH, model

from .registry_story import SIMULATED, Story

MINE = PlacementPolicy(name="mine", weights=PolicyWeights(idle=1.0))


@pytest.fixture
def story() -> Story:
    return Story()


def done(story: Story, asked: Fact) -> dict[str, str]:
    outcome = story.answered(story.ask(asked))
    assert isinstance(outcome, Fulfilled), outcome
    return outcome.result


def refused(story: Story, asked: Fact) -> tuple[int, str]:
    before = story.log.facts(MESH)
    outcome = story.answered(story.ask(asked))
    assert isinstance(outcome, Rejected), outcome
    assert before == story.log.facts(MESH)
    return outcome.status, outcome.reason


def named_by(story: Story, name: str, policy: str) -> None:
    spec = SIMULATED.model_copy(update={"policy": policy})
    story.log.given(model(ModelId(f"m-{name}")), SpecAccepted(name=name, revision=1, digest="d", spec=spec))


def test_a_policy_is_set_replaced_and_withdrawn_and_what_is_so_already_makes_no_event(story: Story) -> None:
    # given
    assert {"policy": "mine"} == done(story, PolicyRequested(policy=MINE))
    assert PolicySet(policy=MINE) == story.log.facts(MESH)[-1]
    # when it is told again
    before = story.log.facts(MESH)
    done(story, PolicyRequested(policy=MINE))
    # then nothing changes, and another of its name replaces it
    assert before == story.log.facts(MESH)
    other = MINE.model_copy(update={"slots": 2})
    done(story, PolicyRequested(policy=other))
    assert other == story.state.fleet.policies["mine"]
    assert {"policy": "mine"} == done(story, PolicyWithdrawalRequested(name="mine"))
    assert PolicyWithdrawn(name="mine") == story.log.facts(MESH)[-1]


def test_the_mesh_goes_by_the_chosen_one_and_choosing_it_again_makes_no_event(story: Story) -> None:
    done(story, PolicyRequested(policy=MINE))
    assert {"policy": "mine"} == done(story, PolicyChoiceRequested(name="mine"))
    assert PolicyChosen(name="mine") == story.log.facts(MESH)[-1]
    before = story.log.facts(MESH)
    done(story, PolicyChoiceRequested(name="mine"))
    assert before == story.log.facts(MESH)
    done(story, PolicyChoiceRequested(name="spread"))
    assert "spread" == story.state.fleet.policy


@pytest.mark.parametrize("name", BUILTIN_NAMES)
def test_those_that_weft_comes_with_can_be_chosen_but_neither_set_nor_withdrawn(story: Story, name: str) -> None:
    told = MINE.model_copy(update={"name": name})
    why = f"{name} is a policy that Weft comes with"
    assert (409, f"{why}: give yours another name") == refused(story, PolicyRequested(policy=told))
    assert (409, f"{why}: it can't be withdrawn") == refused(story, PolicyWithdrawalRequested(name=name))
    done(story, PolicyChoiceRequested(name=name))


def test_a_policy_that_is_not_there_can_be_neither_chosen_nor_withdrawn(story: Story) -> None:
    why = "there is no policy mine; there is: balanced, binpack, spread"
    assert (404, why) == refused(story, PolicyChoiceRequested(name="mine"))
    assert (404, why) == refused(story, PolicyWithdrawalRequested(name="mine"))


def test_the_meshs_own_policy_stays_until_another_is_chosen(story: Story) -> None:
    done(story, PolicyRequested(policy=MINE))
    done(story, PolicyChoiceRequested(name="mine"))
    why = "mine is the mesh's own policy: choose another one first"
    assert (409, why) == refused(story, PolicyWithdrawalRequested(name="mine"))
    done(story, PolicyChoiceRequested(name="balanced"))
    done(story, PolicyWithdrawalRequested(name="mine"))


def test_a_policy_that_models_name_stays_and_who_they_are_is_said(story: Story) -> None:
    # given nine models that name it, and one that names another
    done(story, PolicyRequested(policy=MINE))
    for number in range(9):
        named_by(story, f"m{number}", "mine")
    named_by(story, "other", "spread")
    # then
    why = "m0, m1, m2, m3, m4, m5, m6, m7 and 1 more would be left without it: deploy what names it without it first"
    assert (409, why) == refused(story, PolicyWithdrawalRequested(name="mine"))
    # when they are gone
    for number in range(9):
        story.log.given(model(ModelId(f"m-m{number}")), Deleted())
    done(story, PolicyWithdrawalRequested(name="mine"))


def test_there_are_at_most_so_many_and_one_that_is_there_can_be_replaced_then(story: Story) -> None:
    for number in range(MOST_POLICIES):
        done(story, PolicyRequested(policy=MINE.model_copy(update={"name": f"p{number}"})))
    why = f"there are {MOST_POLICIES} policies already, as many as may be: withdraw one"
    assert (409, why) == refused(story, PolicyRequested(policy=MINE))
    done(story, PolicyRequested(policy=MINE.model_copy(update={"name": "p0", "slots": 1})))
