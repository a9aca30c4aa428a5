"""What is put into the mesh's store, when, and how often."""

import pytest
from weft_worker_agent.domain.storing import (
    MOST_TRIES,
    SPREAD_S,
    Put,
    after_failed_put,
    after_put,
    next_put,
    puts_of,
)


def half() -> float:
    return 0.5


def test_what_came_from_its_source_is_put_at_once_and_the_rest_by_chance() -> None:
    puts = puts_of(["a", "b"], {"a": False}, {}, 100.0, half)
    assert {"a": Put(100.0), "b": Put(100.0 + SPREAD_S / 2)} == puts
    assert "a" == next_put(puts, 100.0)
    assert next_put({"b": puts["b"]}, 100.0 + SPREAD_S / 2 - 0.1) is None
    assert "b" == next_put({"b": puts["b"]}, 100.0 + SPREAD_S / 2)


def test_what_is_there_is_not_looked_at_again_until_it_comes_anew() -> None:
    puts = {"a": after_put(Put(1.0))}
    assert next_put(puts, 1e9) is None
    assert puts == puts_of(["a"], {}, puts, 5.0, half)
    again = puts_of(["a"], {"a": True}, puts, 5.0, half)
    assert {"a": Put(5.0, over=True)} == again
    assert "a" == next_put(again, 5.0)


def test_what_lies_here_no_more_is_forgotten() -> None:
    assert {} == puts_of([], {"a": False}, {"a": Put(1.0)}, 5.0, half)


def test_what_failed_least_comes_first_and_then_what_waits_longest() -> None:
    puts = {"a": Put(1.0, failed=1), "b": Put(3.0), "c": Put(2.0)}
    assert "c" == next_put(puts, 9.0)
    assert "b" == next_put({**puts, "c": Put(9.5)}, 9.0)


def test_a_put_that_fails_is_tried_ever_later_and_then_left() -> None:
    put, now, waits = Put(0.0, over=True), 0.0, list[float]()
    while not put.ended:
        put = after_failed_put(put, now, lasting=False)
        waits.append(put.next_at - now)
        now = put.next_at
    assert MOST_TRIES == len(waits) == put.failed
    assert [1.0, 4.0, 16.0, 64.0, 256.0] == waits[:5]
    assert put.over, "what lies there is as wrong as before"


@pytest.mark.parametrize("lasting", [True, False])
def test_what_only_a_person_mends_is_left_at_once(lasting: bool) -> None:
    assert lasting == after_failed_put(Put(0.0), 0.0, lasting=lasting).ended
