"""A placement policy as an admin writes it, and what is said of one that can't be used."""

from typing import Any

import pytest
from weft_contracts.policies import PlacementPolicy, PolicyWeights
from weft_contracts.written_policy import UnreadablePolicy, policy_of
from weft_contracts.yaml_document import document

WRITTEN: dict[str, Any] = {"name": "mine", "weights": {"idle": 1}}


def test_what_is_not_said_keeps_apart_by_zones_and_weighs_nothing() -> None:
    told = PlacementPolicy(name="mine", apart="zones", slots=64, weights=PolicyWeights(idle=1.0))
    assert told == policy_of(document("name: mine\nweights: {idle: 1}\n"))


def test_an_apart_of_no_is_the_word_though_yaml_takes_it_for_false() -> None:
    assert "no" == policy_of(document("name: mine\napart: no\nweights: {binpack: 0.5}\n")).apart


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"name": "My policy"}, "name: want a small letter, then small letters, digits and -, 63 characters at most"),
        ({"apart": "racks"}, "apart: want 'zones', 'nodes' or 'no'"),
        ({"apart": True}, "apart: want 'zones', 'nodes' or 'no'"),
        ({"slots": 0}, "slots: want greater than or equal to 1"),
        ({"slots": "8"}, "slots: want a valid integer"),
        ({"strategy": "spread"}, "strategy: is no field of a policy: want one of name, apart, slots, weights"),
        ({"weights": {"idel": 1}}, "weights.idel: is no field of a policy: want one of idle, binpack, spread, snug"),
        ({"weights": {"idle": -1}}, "weights.idle: want greater than or equal to 0"),
        ({"weights": {"idle": 1001}}, "weights.idle: want less than or equal to 1000"),
        ({"weights": {"idle": True}}, "weights.idle: want a valid number"),
        ({"weights": {"idle": float("nan")}}, "weights.idle: want a"),
        ({"weights": {"idle": 0}}, "weights: all weights are 0: want one above 0"),
        ({"weights": None}, "weights: want a"),
    ],
)
def test_what_makes_no_policy_is_refused_by_its_field_with_what_would_be_right(
    changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UnreadablePolicy) as refused:
        policy_of(WRITTEN | changed)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("body", [None, [], "mine", [{"name": "mine"}]])
def test_what_has_no_fields_is_no_policy(body: object) -> None:
    with pytest.raises(UnreadablePolicy, match="it holds no fields: want name and weights"):
        policy_of(body)


def test_a_policy_without_weights_is_told_which_there_are() -> None:
    with pytest.raises(UnreadablePolicy, match="weights: is missing: want a weight for one of idle, binpack, spread"):
        policy_of({"name": "mine"})
