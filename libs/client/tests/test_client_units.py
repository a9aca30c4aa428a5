"""Sizes and spans of time as people read and write them."""

import pytest
from weft_client.failure import Exit, Failure
from weft_client.units import size, span


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1_800), ("12h", 43_200), ("7d", 604_800)]
)
def test_a_span_is_read_in_seconds(text: str, seconds: int) -> None:
    assert seconds == span(text)


@pytest.mark.parametrize("text", ["", "0", "-1s", "1.5h", "7w", "1h30m"])
def test_a_span_that_cant_be_meant_is_wrong_usage(text: str) -> None:
    with pytest.raises(Failure, match=r"--within .*: want a span such as 90s, 30m, 12h or 7d") as failure:
        span(text, "--within")
    assert Exit.USAGE == failure.value.exit


@pytest.mark.parametrize(
    ("count", "words"),
    [(None, "?"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (80 << 30, "80.0 GiB"), (200 << 40, "200 TiB")],
)
def test_bytes_are_told_in_binary_units(count: int | None, words: str) -> None:
    assert words == size(count)
