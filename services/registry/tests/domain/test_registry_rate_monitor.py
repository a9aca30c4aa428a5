"""Shares: a flood is found whatever it is made of, and nobody who comes back, folds anew or flaps is taken for one."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.ids import NodeId
from weft_registry.domain.rate_monitor import MIB, Connection, RateMonitor, Shares, Totals

A, B = NodeId("n-a"), NodeId("n-b")
SHARES = Shares()


def connection(node: NodeId, id: int, received: int, sent: int = 0, bytes: int = 0) -> Connection:
    return Connection("s-1", id, node, received, sent, bytes)


def looked(*looks: Sequence[Connection], every: float = 1.0) -> RateMonitor:
    monitor = RateMonitor(SHARES)
    for number, look in enumerate(looks):
        monitor.look(look, 100.0 + every * number)
    return monitor


@pytest.mark.parametrize(
    ("sends", "why"),
    [
        ({"received": 23_000}, "it sent 23,000 messages within 1.0 s"),
        ({"received": 210_000, "sent": 210_000}, "it sent 210,000 messages within 1.0 s"),
        ({"received": 10, "bytes": 200 * MIB}, "it sent 209,715,200 bytes within 1.0 s"),
    ],
)
def test_a_flood_is_found_at_the_next_look(sends: dict[str, int], why: str) -> None:
    quiet = connection(B, 2, 50)
    monitor = looked(
        [connection(A, 1, 3), quiet], [connection(A, 1, **sends | {"received": sends["received"] + 3}), quiet]
    )
    assert [A] == list(monitor.floods)
    assert monitor.floods[A].startswith(why), monitor.floods


def test_what_is_sent_over_many_connections_is_one_nodes() -> None:
    before = [connection(A, id, 0) for id in range(20)]
    assert {A} == looked(before, [connection(A, id, 1_100) for id in range(20)]).floods.keys()
    # and a connection that is new has sent all of it since
    assert {A} == looked([], [connection(A, id, 1_100) for id in range(20)]).floods.keys()


def test_bytes_that_are_sent_over_many_connections_are_one_nodes() -> None:
    before = [connection(A, id, 0) for id in range(20)]
    assert {A} == looked(before, [connection(A, id, 1, bytes=10 * MIB) for id in range(20)]).floods.keys()


def test_connections_that_say_nothing_are_no_flood_however_often_they_are_looked_at() -> None:
    look = [connection(A, id, 1) for id in range(100)]
    assert {} == looked(*[look] * 500, every=0.5).floods


def test_a_small_flood_is_found_in_time() -> None:
    """300 leases a second are 200 above the share: its burst lasts for 100 s."""
    looks = [[connection(A, 1, 300 * second)] for second in range(200)]
    assert {} == looked(*looks[:90]).floods
    assert {A} == looked(*looks).floods.keys()


def test_more_connections_than_a_flapping_agent_leaves_behind_are_too_many() -> None:
    assert {} == looked([connection(A, id, 1) for id in range(100)]).floods
    monitor = looked([connection(A, id, 1) for id in range(101)])
    assert {A: "it held 101 connections at once, where a node may have 100"} == monitor.floods


def test_what_was_sent_before_the_first_look_is_not_judged() -> None:
    """A registry that takes over doesn't know since when."""
    assert {} == looked([connection(A, 1, 10**9, bytes=10**12)], [connection(A, 1, 10**9 + 5, bytes=10**12)]).floods


def test_folding_a_long_history_anew_is_no_flood() -> None:
    """Each commit of it is one message to the node and one acknowledgement, 10,000 a second."""
    looks = [[connection(A, 1, 10_010 * second, 10_000 * second, 800_000 * second)] for second in range(15)]
    assert {} == looked(*looks).floods


@given(
    st.lists(
        st.tuples(
            st.floats(0.5, 10.0),  # between two looks
            st.integers(1, 100),  # connections, most of them dead
            st.floats(0, 50),  # messages a second that answer nothing
            st.integers(0, 500),  # and at once, after an outage
        ),
        max_size=40,
    )
)
def test_nobody_who_says_fifty_things_a_second_and_hundreds_after_each_outage_is_cut_off(
    looks: list[tuple[float, int, float, int]],
) -> None:
    monitor, now, said = RateMonitor(SHARES), 0.0, 0
    for seconds, connections, rate, burst in looks:
        now += seconds
        said += int(rate * seconds) + (burst if seconds > 5 else 0)
        dead = [connection(A, id, 7) for id in range(2, connections + 1)]
        monitor.look([connection(A, 1, said, bytes=200 * said), *dead], now)
    assert {} == monitor.floods


def test_facts_beyond_a_share_are_a_flood_and_the_start_of_many_replicas_is_none() -> None:
    monitor = RateMonitor(SHARES)
    for second in range(86_400 // 60):  # a day of pressure from eight devices that others use, and of restarts
        monitor.facts(A, 48, 60.0 * second)
    for _ in range(10):  # 64 replicas start, again and again
        monitor.facts(B, 448, 86_400.0)
    assert {} == monitor.floods
    monitor.facts(B, 1_500, 86_401.0)
    assert {B: "it appended facts by the thousand, where a node may say 5,000 at once and 2 a second"} == monitor.floods


def test_who_is_forgotten_begins_anew() -> None:
    monitor = RateMonitor(SHARES)
    monitor.facts(A, 4_999, 1.0)
    monitor.facts(B, 6_000, 1.0)
    monitor.forget([A, B])
    monitor.facts(A, 4_999, 2.0)
    monitor.facts(B, 4_999, 2.0)
    assert {} == monitor.floods


@pytest.mark.parametrize(
    ("now", "loud"),
    [
        (Totals(2_000, 3_000, 300_000), False),  # a thousand nodes, three messages a second each
        (Totals(2_000, 23_000, 2_000_000), True),
        (Totals(2_000, 3_000, 60 * MIB), True),
        (Totals(9_000, 3_000, 300_000), True),
        (Totals(2_000, -1, 300_000), True),  # a server was started anew
    ],
)
def test_each_connection_is_looked_at_where_all_together_are_loud(now: Totals, loud: bool) -> None:
    before = Totals(2_000, 0, 0)
    assert loud == now.above_usual(before, 1.0, 1_000)


@pytest.mark.parametrize(
    ("messages", "bytes", "loud"),
    [
        (2_400, 2 * MIB + 2 * 4_096_000, False),  # within two seconds, of a thousand nodes: four messages a second
        (8_400, 2 * MIB + 2 * 4_096_000, False),  # each of a kilobyte, and as much again as anybody may
        (8_401, 0, True),
        (0, 2 * MIB + 2 * 4_096_000 + 1, True),
    ],
)
def test_how_much_is_loud_grows_with_the_nodes_and_the_time(messages: int, bytes: int, loud: bool) -> None:
    assert loud == Totals(2_000, messages, bytes).above_usual(Totals(2_000, 0, 0), 2.0, 1_000)


def test_what_was_sent_before_is_not_counted_again_and_silence_is_not_loud() -> None:
    before = Totals(2_000, 0, 60 * MIB)
    assert not before.above_usual(before, 1.0, 1_000)


def test_shares_grow_by_a_factor() -> None:
    twice = SHARES.times(2)
    assert (200, 10_000, 4) == (twice.connections, twice.facts.burst, twice.facts.rate)
    assert 1 == SHARES.times(0.001).connections
