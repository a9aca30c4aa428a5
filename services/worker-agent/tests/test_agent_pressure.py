"""When the log is told what others use of the machine's memory."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import psutil
from hypothesis import given
from hypothesis import strategies as st
from weft_worker_agent.domain.pressure import STAYS_S, TELLING_SHARE, Pressure, looked, others_on
from weft_worker_agent.outbound.machine.memory_use import of_ours, used_by_others

TOTAL = 1000
MIB = 1 << 20
CALM = Pressure(TOTAL, settled=100)


def after(pressure: Pressure, *looks: tuple[float, int]) -> Pressure:
    for at, others in looks:
        pressure = looked(pressure, others, at)
    return pressure


def test_nothing_is_told_before_the_first_looks_have_stayed() -> None:
    assert after(Pressure(TOTAL), (0, 300), (9.9, 300)).settled is None
    assert 310 == after(Pressure(TOTAL), (0, 300), (10, 310)).settled


def test_a_change_that_stays_ten_seconds_is_told_up_and_down() -> None:
    up = after(CALM, (0, 200), (5, 400), (9.9, 300))
    assert 100 == up.settled
    assert 250 == (told := after(up, (10, 250))).settled
    assert 120 == after(told, (20, 0), (30, 120)).settled


def test_a_change_that_passes_is_not_told() -> None:
    assert 100 == after(CALM, (0, 900), (9, 105), (10, 900), (19, 900), (19.5, 0), (29, 0)).settled


@given(st.lists(st.integers(100 - 20, 100 + 20)))
def test_a_small_change_is_never_told(looks: list[int]) -> None:
    assert 100 == after(CALM, *[(i * STAYS_S, others) for i, others in enumerate(looks)]).settled


@given(st.lists(st.tuples(st.floats(0.1, 30), st.integers(0, TOTAL)), max_size=60))
def test_it_is_told_at_most_every_ten_seconds_and_then_something_new(looks: list[tuple[float, int]]) -> None:
    pressure, now, told = CALM, 0.0, -STAYS_S
    for passed, others in looks:
        now += passed
        before, pressure = pressure, looked(pressure, others, now)
        if before.settled != pressure.settled:
            assert before.settled is not None
            assert pressure.settled is not None
            assert abs(before.settled - pressure.settled) > TELLING_SHARE * TOTAL
            assert now - told >= STAYS_S
            told = now


@contextmanager
def holding(size: int) -> Generator[int]:
    """A process that holds so many bytes; gives its id."""
    program = f"import sys; held = bytearray({size}); held[::4096] = b'x' * len(held[::4096]); print(); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def test_what_a_host_holds_is_not_counted_to_the_others() -> None:
    with holding(400 * MIB) as host:
        difference = used_by_others([]) - used_by_others([host])

    assert 400 * MIB < difference + 50 * MIB  # the machine's other processes come and go
    assert 0 < used_by_others([host]) < psutil.virtual_memory().total


def test_what_our_processes_hold_on_an_accelerator_is_not_the_others() -> None:
    assert 300 == others_on(1000, 500, {7: 150, 8: 50}, claimed=True)
    assert 500 == others_on(1000, 500, {}, claimed=False)
    assert 0 == others_on(1000, 900, {7: 150}, claimed=True)


def test_what_can_not_be_told_apart_is_unknown() -> None:
    assert others_on(1000, 500, {7: 150, 8: None}, claimed=True) is None
    assert others_on(1000, 500, {}, claimed=True) is None


@given(st.integers(0, 1000), st.dictionaries(st.integers(1, 9), st.integers(0, 400)), st.booleans())
def test_others_hold_never_less_than_nothing_nor_more_than_is_taken(
    free: int, ours: dict[int, int | None], claimed: bool
) -> None:
    others = others_on(1000, free, ours, claimed=claimed)

    assert others is None or 0 <= others <= 1000 - free


def test_a_process_that_a_host_started_is_ours() -> None:
    with holding(1) as host, holding(1) as other:
        children = psutil.Process().pid  # who started both
        assert {host: 5} == of_ours({host: 5, other: 6, 2**22 + 1: 7}, {host})
        assert {host: 5, other: 6} == of_ours({host: 5, other: 6}, {children})
