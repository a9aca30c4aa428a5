"""Silence: only what could have been heard, on the registry's own clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_registry.domain.failure_detector import FailureDetector, Timeouts

from .registry_story import node

TIMEOUTS = Timeouts()
A = node(1)


def beating(*, echoes_until: float = 100.0) -> FailureDetector:
    """Begun at 0, with a beat every second up to a moment."""
    detector = FailureDetector.begin(0.0, TIMEOUTS)
    for second in range(1, int(echoes_until) + 1):
        detector.echo(float(second))
    return detector


def test_nobodys_silence_counts_before_the_start_grace_is_over() -> None:
    detector = beating(echoes_until=40)
    assert detector.silence(A, 29.9) is None
    assert detector.silence(A, 30.0) is not None


def test_silence_counts_from_the_last_lease() -> None:
    detector = beating()
    detector.renew(A, 98.0)
    assert 2.0 == detector.silence(A, 100.0)


def test_a_node_that_was_never_heard_is_silent_since_the_registry_could_hear() -> None:
    assert 99.0 == beating().silence(A, 100.0)


def test_silence_counts_no_further_than_the_last_echo() -> None:
    """What was sent after it may still be on its way."""
    detector = beating()
    detector.renew(A, 98.0)
    assert 2.0 == detector.silence(A, 102.4)


def test_without_an_echo_for_long_nothing_can_be_said() -> None:
    detector = beating()
    assert detector.silence(A, 102.5) is not None
    assert detector.silence(A, 102.6) is None


def test_without_any_echo_nothing_can_be_said() -> None:
    assert FailureDetector.begin(0.0, TIMEOUTS).silence(A, 1000.0) is None


def test_after_an_interruption_silence_counts_anew_and_not_before_its_grace_is_over() -> None:
    # given
    detector = beating()
    detector.renew(A, 60.0)
    # when
    detector.interrupted(100.0)
    for second in range(101, 112):
        detector.echo(float(second))
    # then
    assert detector.silence(A, 109.9) is None
    assert 11.0 == detector.silence(A, 111.0)


def test_after_a_short_gap_in_the_echoes_silence_counts_anew() -> None:
    detector = beating()
    detector.renew(A, 97.0)
    detector.echo(103.0)
    assert 0.0 == detector.silence(A, 103.0)


def test_a_long_gap_in_the_echoes_is_an_interruption() -> None:
    detector = beating()
    detector.renew(A, 99.0)
    detector.echo(190.0)
    assert detector.silence(A, 190.0) is None
    for second in range(191, 201):
        detector.echo(float(second))
    assert 10.0 == detector.silence(A, 200.0)


def test_an_interruption_never_shortens_the_start_grace() -> None:
    detector = FailureDetector.begin(0.0, TIMEOUTS)
    detector.interrupted(1.0)
    assert 30.0 == detector.paused_until


def test_a_sign_of_life_counts_at_once_also_while_silence_does_not() -> None:
    detector = FailureDetector.begin(0.0, TIMEOUTS)
    detector.renew(A, 1.0)
    assert (True, None) == (detector.alive(A, 1.0), detector.silence(A, 1.0))
    assert (True, False) == (detector.alive(A, 4.9), detector.alive(A, 5.0))


@given(st.lists(st.tuples(st.sampled_from(["note", "echo", "cut", "wait"]), st.floats(0, 20)), max_size=30))
def test_silence_is_never_more_than_the_time_since_the_last_lease_or_interruption(
    steps: list[tuple[str, float]],
) -> None:
    detector, now, last = FailureDetector.begin(0.0, TIMEOUTS), 0.0, 0.0
    for what, later in steps:
        now += later
        if what == "note":
            detector.renew(A, now)
            last = now
        elif what == "echo":
            detector.echo(now)
        elif what == "cut":
            detector.interrupted(now)
            last = now
        silence = detector.silence(A, now)
        assert silence is None or 0.0 <= silence <= now - last


def test_the_time_without_the_brake_is_counted() -> None:
    detector = beating()
    assert float("inf") == detector.observations([A], 90.0, braked=False).unbraked
    assert 0.0 == detector.observations([A], 91.0, braked=True).unbraked
    assert 4.0 == detector.observations([A], 95.0, braked=False).unbraked


@pytest.mark.parametrize(("at", "expected"), [(160.0, True), (160.1, False)])
def test_who_was_healthy_is_remembered_for_a_minute(at: float, expected: bool) -> None:
    detector = beating()
    detector.note_healthy([A], 100.0)
    assert expected == (A in detector.observations([A], at, braked=False).healthy_before)
