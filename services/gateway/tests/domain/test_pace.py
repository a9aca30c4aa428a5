"""What drips is told from what is slow, and from what nobody waited for."""

from weft_gateway.domain.pace import Pace


def test_only_time_that_was_waited_counts_and_only_a_whole_span_is_judged() -> None:
    pace = Pace(least=10, over_s=60)
    assert not pace.drips(59, 0)
    assert pace.drips(1, 599)
    assert not pace.drips(60, 600)
    for _ in range(1000):
        assert not pace.drips(0, 0)


def test_each_span_is_judged_by_itself() -> None:
    pace = Pace(least=10, over_s=60)
    assert not pace.drips(60, 1_000_000)
    assert pace.drips(100, 999)
