"""VRAM budgets as admins say them and as they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.budget import BadSize
from weft_contracts.facts.values import VramBudget
from weft_contracts.said_budget import budget_text, said_budget

GB, GIB = 10**9, 1 << 30


@pytest.mark.parametrize(
    ("text", "memory", "expected"),
    [
        ("80%", 10 * GB, 8 * GB),
        ("0.8", 10 * GB, 8 * GB),
        ("12GB", 10 * GB, 10 * GB),
        ("", 10 * GB, 10 * GB),
        ("12GB", 80 * GB, 12 * GB),
        ("12GiB", 80 * GB, 12 * GIB),
    ],
)
def test_a_budget_bounds_each_device_and_an_empty_one_bounds_none(text: str, memory: int, expected: int) -> None:
    assert expected == said_budget(text).of(memory)


def test_what_is_no_budget_is_refused() -> None:
    with pytest.raises(BadSize, match="want a share"):
        said_budget("much")


@given(
    st.one_of(
        st.floats(1e-9, 1.0).map(lambda share: VramBudget(share=round(share, 12))),
        st.integers(1, 10**15).map(lambda size: VramBudget(bytes=size)),
        st.just(VramBudget()),
    ),
    st.integers(0, 10**13),
)
def test_a_budgets_text_names_it_and_it_is_never_more_than_there_is(budget: VramBudget, memory: int) -> None:
    assert 0 <= budget.of(memory) <= memory
    assert abs(said_budget(budget_text(budget)).of(memory) - budget.of(memory)) <= 1
