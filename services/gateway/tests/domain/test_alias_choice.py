"""Which of an alias's models takes a request."""

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.aliases import AliasRule
from weft_contracts.ids import ModelId
from weft_gateway.domain.routing.alias_choice import HOPEFUL, SERVING, Readiness, Target, choose

RULES: tuple[AliasRule, ...] = get_args(AliasRule)
CONDITIONS: tuple[Readiness, ...] = get_args(Readiness)
draws = st.floats(0, 1, exclude_max=True)


def targets(*of: tuple[int, Readiness]) -> list[Target]:
    return [Target(ModelId(f"m-{place}"), weight, readiness) for place, (weight, readiness) in enumerate(of)]


some = st.lists(st.tuples(st.integers(1, 100), st.sampled_from(CONDITIONS)), min_size=1, max_size=6).map(
    lambda of: targets(*of)
)


@pytest.mark.parametrize(
    ("of", "taken"),
    [
        (("free", "free"), 0),
        (("busy", "free"), 1),
        (("coming", "free"), 1),
        (("away", "free"), 1),
        (("busy", "busy"), 0),
        (("coming", "busy"), 1),
        (("full", "busy"), 1),
        (("full", "coming"), 1),
        (("away", "coming"), 1),
        (("away", "full"), 1),
        (("coming", "coming"), 0),
        (("away", "away"), 0),
    ],
)
def test_in_order_the_first_that_is_free_takes_it_or_else_the_first_where_waiting_is_shortest(
    of: tuple[Readiness, Readiness], taken: int
) -> None:
    for draw in (0.0, 0.99):
        assert ModelId(f"m-{taken}") == choose("order", targets((1, of[0]), (99, of[1])), draw).model


@pytest.mark.parametrize(("draw", "taken"), [(0.0, 0), (0.79, 0), (0.8, 1), (0.899, 1), (0.9, 2), (0.999, 2), (1.0, 2)])
def test_a_draw_falls_to_each_by_its_weight(draw: float, taken: int) -> None:
    assert ModelId(f"m-{taken}") == choose("weights", targets((8, "free"), (1, "free"), (1, "free")), draw).model


def test_a_busy_model_keeps_its_share_and_one_whose_line_is_full_leaves_it_to_the_others() -> None:
    def share(first: Readiness) -> float:
        of = targets((80, first), (20, "free"))
        taken = Counter(choose("weights", of, draw / 100).model for draw in range(100))
        return taken[ModelId("m-0")] / 100

    assert {"free": 0.8, "busy": 0.8, "full": 0, "coming": 0, "away": 0} == {each: share(each) for each in CONDITIONS}


@given(st.sampled_from(RULES), some, draws)
def test_whoever_can_serve_goes_before_who_can_not_and_hope_before_none(
    rule: AliasRule, of: list[Target], draw: float
) -> None:
    taken = choose(rule, of, draw)
    assert taken in of
    for better in (SERVING, HOPEFUL):
        assert taken.readiness in better or not any(each.readiness in better for each in of)


@given(st.sampled_from(RULES), some, draws, st.integers(0, 5))
def test_who_waits_stays_unless_another_is_in_a_better_condition(
    rule: AliasRule, of: list[Target], draw: float, place: int
) -> None:
    current = of[place % len(of)]

    chosen = choose(rule, of, draw, current.model)

    fresh = choose(rule, of, draw)
    if chosen != current:
        assert fresh.readiness != current.readiness
    else:
        assert choose(rule, [current, fresh], draw, current.model) == current


@given(some, draws)
def test_in_order_nobody_before_the_chosen_one_is_as_good(of: list[Target], draw: float) -> None:
    chosen = choose("order", of, draw)
    assert chosen.readiness not in [each.readiness for each in of[: of.index(chosen)]]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_over_all_draws_each_has_its_weight_to_within_one(weights: list[int]) -> None:
    total = sum(weights)
    free: list[tuple[int, Readiness]] = [(weight, "free") for weight in weights]
    of = targets(*free)
    taken = Counter(choose("weights", of, (draw + 0.5) / total).model for draw in range(total))
    assert weights == [taken[each.model] for each in of]
