"""A secret that is set anew: what was given up with the old value is tried again."""

import pytest
from weft_contracts import subjects
from weft_contracts.facts.mesh import SecretSet
from weft_contracts.facts.model import Retried

from .story import Story, simulated


def set_secret(story: Story, name: str, version: int) -> None:
    """What the registry says of a value that was set."""
    story.log.given(subjects.MESH, SecretSet(name=name, version=version, sealed=f"{version:032x}"))


def retries(story: Story) -> int:
    """How often the model was tried again."""
    return sum(isinstance(fact, Retried) for fact in story.log.facts())


@pytest.fixture
def given_up() -> Story:
    """A model whose spec names a secret, and whose only try ended for good."""
    story = Story()
    story.node("a", "b")
    set_secret(story, "cloud", 1)
    story.pass_time(60)
    story.deploy("m", simulated(1).model_copy(update={"engine_args": {"fail_load": "secret:cloud"}}))
    story.settle()
    story.fail(1, "a", permanent=True)
    story.settle()
    assert story.model().unservable is not None
    return story


def test_a_model_that_was_given_up_is_tried_again_once_its_secret_has_another_value(given_up: Story) -> None:
    given_up.pass_time(60)
    set_secret(given_up, "cloud", 2)
    given_up.settle()

    assert given_up.model().unservable is None
    assert [2] == given_up.numbers()
    # and where that is of no use either, nothing is tried until the next value
    given_up.pass_time(60)
    given_up.fail(2, "a", permanent=True)
    given_up.pass_time(600)
    assert given_up.model().unservable is not None
    assert 1 == retries(given_up)


def test_a_failure_right_after_a_new_value_may_still_be_the_old_ones(given_up: Story) -> None:
    given_up.pass_time(60)
    set_secret(given_up, "cloud", 2)
    given_up.settle()
    given_up.fail(2, "a", permanent=True)
    given_up.settle()

    assert [3] == given_up.numbers()


def test_another_secret_lifts_nothing(given_up: Story) -> None:
    given_up.pass_time(60)
    set_secret(given_up, "other", 2)
    given_up.pass_time(60)

    assert given_up.model().unservable is not None
    assert 0 == retries(given_up)
