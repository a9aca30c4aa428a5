"""Ranges of files that are sent: what is written is read again, and what is none is refused with a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.content_range import BadRange, ContentRange, content_range, range_there, said, there_of

_SIZES = st.integers(1, 10**18 - 1)


@given(_SIZES, _SIZES, _SIZES)
def test_a_range_is_what_its_header_says(one: int, other: int, third: int) -> None:
    start, end, total = sorted((one - 1, other, third))
    wanted = ContentRange(total, start, max(end, start + 1)) if start < total else ContentRange(total)
    assert wanted == content_range(said(wanted))


@given(st.integers(0, 10**18 - 1))
def test_how_much_is_there_is_what_its_header_says(there: int) -> None:
    assert there == there_of(range_there(there).get("range", ""))


@pytest.mark.parametrize(
    "text",
    [
        *("", "bytes", "bytes 0-99", "bytes 1-0/2", "bytes 0-2/2", "bytes -1-2/3", "items 0-1/2"),
        *("bytes 0-1/2\r\nx: y", f"bytes 0-1/{'9' * 19}"),
    ],
)
def test_what_is_no_range_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadRange, match="content-range is"):
        content_range(text)
    with pytest.raises(BadRange, match="want bytes=0-LAST"):
        there_of(text or "bytes=1-2")
