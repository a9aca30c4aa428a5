"""Who may call a gateway without keys, and how often one may fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_gateway.domain.access import AuthContext, Policy, authenticate
from weft_gateway.domain.caller import Caller
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_headers import checked_correlation_id
from weft_gateway.domain.token_buckets import TokenBuckets


def caller(peer: str | None, host: str | None, origin: str | None = None, policy: Policy = "local") -> Caller:
    return authenticate(AuthContext(peer, host, origin), "admin", policy, {}, 0.0)


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "127.0.0.9:1", "[::1]:8080", "LOCALHOST"])
def test_this_machine_may_call_by_its_own_name(host: str) -> None:
    assert "anonymous" == caller("127.0.0.1", host).actor
    assert "anonymous" == caller("::1", host, f"http://{host}").actor
    assert "anonymous" == caller(None, host).actor


@pytest.mark.parametrize(
    ("peer", "host", "origin"),
    [
        ("10.0.0.1", "localhost", None),
        ("::ffff:10.0.0.1", "localhost", None),
        ("127.0.0.1", "evil.example", None),
        ("127.0.0.1", "127.0.0.1.evil.example", None),
        ("127.0.0.1", "127.\u00b2", None),
        ("127.0.0.1", "", None),
        ("127.0.0.1", "[::1", "http://evil.example"),
        ("127.0.0.1", "[::2]", None),
        ("127.0.0.1", None, None),
        ("127.0.0.1", "localhost:8080", "http://evil.example"),
        ("127.0.0.1", "localhost:8080", "http://localhost:3000"),
        ("127.0.0.1", "localhost:8080", "null"),
    ],
)
def test_others_may_not(peer: str, host: str | None, origin: str | None) -> None:
    with pytest.raises(Refused) as refused:
        caller(peer, host, origin)
    assert 403 == refused.value.status


def test_where_anyone_may_call_a_foreign_page_still_may_not() -> None:
    assert "anonymous" == caller("10.0.0.1", "weft.example", policy="anyone").actor
    with pytest.raises(Refused):
        caller("10.0.0.1", "weft.example", "http://evil.example", policy="anyone")


@pytest.mark.parametrize("id", ["", "a b", "x" * 65, "é", "a\n"])
def test_a_strange_request_id_is_refused(id: str) -> None:
    with pytest.raises(Refused):
        checked_correlation_id(id)


def test_a_sane_request_id_is_kept_and_none_is_none() -> None:
    assert "a.b_c:d-1" == checked_correlation_id("a.b_c:d-1")
    assert checked_correlation_id(None) is None


def test_tries_are_counted_for_each_caller_and_come_back_with_time() -> None:
    buckets = TokenBuckets(size=2, every=10.0)
    buckets.spend("a", 0.0)
    assert 0.0 == buckets.wait("a", 0.0)
    buckets.spend("a", 0.0)
    assert 10.0 == buckets.wait("a", 0.0)
    assert 0.0 == buckets.wait("b", 0.0)
    assert 0.0 == buckets.wait("a", 10.0)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60))
def test_no_caller_gets_more_tries_than_the_bucket_gives(steps: list[float]) -> None:
    buckets, now, taken = TokenBuckets(size=3, every=2.0), 0.0, 0
    for step in steps:
        now += step
        if buckets.wait("a", now) == 0.0:
            buckets.spend("a", now)
            taken += 1
    assert taken <= 3 + now / 2.0 + 1
