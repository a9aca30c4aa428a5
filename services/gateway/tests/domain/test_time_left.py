"""What is said of the rest of something: an estimate where one can be made, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_gateway.domain.time_left import LEAST_S, span, time_left

sizes = st.integers(0, 1 << 50)
times = st.floats(0, 1e7, allow_nan=False)


@given(sizes, sizes, times)
def test_an_estimate_is_never_negative_and_none_where_nothing_is_known(done: int, total: int, seconds: float) -> None:
    left = time_left(done, total, seconds)

    if total == 0 or done == 0 or done >= total or seconds < LEAST_S:
        assert left is None
    assert left is None or left > 0


@given(st.integers(2, 1 << 40), st.floats(LEAST_S, 1e6))
def test_at_the_same_rate_the_first_half_says_how_long_the_other_takes(half: int, seconds: float) -> None:
    assert seconds == pytest.approx(time_left(half, 2 * half, seconds))


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 40), st.floats(LEAST_S, 1e6), st.floats(0, 1e6))
def test_who_stands_still_needs_ever_longer(done: int, more: int, seconds: float, waited: float) -> None:
    early, late = time_left(done, done + more, seconds), time_left(done, done + more, seconds + waited)

    assert (early is None) == (late is None)
    assert early is None or late is None or early <= late


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "a few seconds"),
        (7.0, "a few seconds"),
        (8.0, "about 10 s"),
        (44.0, "about 40 s"),
        (54.0, "about 50 s"),
        (56.0, "about 1 min"),
        (125.0, "about 2 min"),
        (3500.0, "about 58 min"),
        (3590.0, "about 1 h"),
        (11000.0, "about 3 h"),
    ],
)
def test_a_span_is_as_exact_as_an_estimate_is(seconds: float, words: str) -> None:
    assert words == span(seconds)


@given(st.floats(0, 1e6))
def test_no_span_is_no_time_at_all(seconds: float) -> None:
    assert " 0 " not in f" {span(seconds)} "
