"""Lists of processors, as Linux writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.processors import MOST, as_list, listed


@given(st.sets(st.integers(0, MOST - 1), max_size=60))
def test_a_list_names_what_it_was_made_of(processors: set[int]) -> None:
    assert processors == listed(as_list(processors))


@pytest.mark.parametrize(
    ("text", "processors"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("", set[int]()), ("0-1,64-65", {0, 1, 64, 65})]
)
def test_linuxs_form_is_read_and_written(text: str, processors: set[int]) -> None:
    assert processors == listed(text)
    assert text.strip() == as_list(processors)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "3-1", "1,,2", "0-8192", "99999", "1 2"])
def test_what_names_no_processors_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"processors"):
        listed(text)
