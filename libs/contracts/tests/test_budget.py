"""VRAM budgets as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.budget import budget_text, parse_budget
from weft_contracts.facts.values import VramBudget

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
        ("12 gib", 80 * GB, 12 * GIB),
        ("1.5GB", 80 * GB, 1_500_000_000),
        ("100%", 10 * GB, 10 * GB),
        ("1", 10 * GB, 10 * GB),
        ("500B", 10 * GB, 500),
    ],
)
def test_a_budget_is_a_share_or_bytes_of_each_device(text: str, memory: int, expected: int) -> None:
    assert expected == parse_budget(text).of(memory)


@pytest.mark.parametrize(
    "text", ["much", "120%", "0", "0%", "-1GB", "12", "12 gigs", "0GB", "1e3GB", "%", "nan", "80%%", "9" * 40 + "GB"]
)
def test_what_is_no_budget_is_refused_in_one_sentence_that_says_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match="is no VRAM budget: want a share") as error:
        parse_budget(text)
    assert "\n" not in str(error.value)


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
    again = parse_budget(budget_text(budget))
    assert abs(again.of(memory) - budget.of(memory)) <= 1
    assert budget.bytes is None or again == budget
