"""How much of a device's memory replicas may claim, as people write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.budget import BadSize, Budget, parse_budget, parse_size

GB = 10**9


@pytest.mark.parametrize(
    ("text", "of_ten_gb"),
    [
        ("80%", 8 * GB),
        ("0.8", 8 * GB),
        (".8", 8 * GB),
        ("100%", 10 * GB),
        ("1", 10 * GB),
        ("12GB", 10 * GB),
        ("4GB", 4 * GB),
        ("4gib", 4 << 30),
        ("1.5 GB", 1_500_000_000),
        ("512MiB", 512 << 20),
    ],
)
def test_a_budget_is_a_share_or_a_size_and_never_more_than_there_is(text: str, of_ten_gb: int) -> None:
    budget = parse_budget(text)

    assert budget is not None
    assert of_ten_gb == budget.of(10 * GB)


def test_no_text_is_no_budget() -> None:
    assert parse_budget("  ") is None


@pytest.mark.parametrize("text", ["0", "0%", "101%", "1.5", "12", "12XB", "-1GB", "0GB", "GB", "1e3GB", "%"])
def test_a_malformed_budget_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadSize, match=r"want"):
        parse_budget(text)


@pytest.mark.parametrize("text", ["", "12", "80%", "none"])
def test_a_malformed_size_is_refused(text: str) -> None:
    with pytest.raises(BadSize):
        parse_size(text)


@given(st.integers(1, 1 << 44), st.floats(0.01, 1))
def test_a_share_is_within_the_device(memory: int, share: float) -> None:
    assert 0 <= Budget(share=share).of(memory) <= memory
