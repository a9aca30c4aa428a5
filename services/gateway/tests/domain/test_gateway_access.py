"""Who may call a gateway without keys, and how often one may fail."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.api_key import ENTROPY_BYTES, hash_of, secret_of
from weft_contracts.ids import KeyId
from weft_gateway.domain.access import (
    AuthContext,
    Policy,
    auth_context,
    authenticate,
    check_host,
    recheck,
    starting,
)
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.keys import KeyView
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


HERE = AuthContext("127.0.0.1", "localhost")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"peer": "10.0.0.1"}, 403, "not_loopback"),
        ({"host": "evil.example"}, 403, "foreign_host"),
        ({"host": None}, 403, "foreign_host"),
        ({"forwarded": True}, 403, "forwarded"),
        ({"origin": "http://evil.example"}, 403, "foreign_origin"),
        ({"doubled": "Host"}, 400, "doubled_header"),
        # what is ambiguous is said before what may not be
        ({"doubled": "Host", "origin": "http://evil.example"}, 400, "doubled_header"),
    ],
)
def test_who_is_not_let_in_is_told_why(changes: dict[str, Any], status: int, code: str) -> None:
    with pytest.raises(Refused) as refused:
        authenticate(replace(HERE, **changes), "admin", "local", {}, 0.0)
    assert (status, code) == (refused.value.status, refused.value.code)


@pytest.mark.parametrize("origin", ["http://localhost", "https://localhost", "https://LOCALHOST"])
def test_a_page_of_the_gateways_own_address_may_call_by_either_scheme(origin: str) -> None:
    assert "anonymous" == authenticate(replace(HERE, origin=origin), "admin", "local", {}, 0.0).actor
    with pytest.raises(Refused):
        authenticate(replace(HERE, origin=origin.replace("http", "ftp")), "admin", "local", {}, 0.0)


def test_a_page_whose_origin_a_setting_allows_may_call() -> None:
    context = replace(HERE, origin="http://app.example", origin_allowed=True)
    assert "anonymous" == authenticate(context, "admin", "local", {}, 0.0).actor


SECRET = secret_of(bytes(ENTROPY_BYTES))
KEY = KeyView(KeyId("k-1"), hash_of(SECRET), "weft-1", ("read",), None, 50.0, 0.0, "anonymous", 1)
KEYS = {KEY.hash: KEY}


def by(authorization: str | None, policy: Policy, now: float = 0.0) -> str:
    """Who the caller is taken for."""
    return authenticate(replace(HERE, authorization=authorization), "read", policy, KEYS, now).actor


@pytest.mark.parametrize("policy", ["local", "keys", "anyone"])
def test_a_key_of_ours_is_held_against_the_keys_wherever_it_is_shown(policy: Policy) -> None:
    assert "k-1" == by(f"Bearer {SECRET}", policy)
    assert "k-1" == by(f"bearer  {SECRET} ", policy)
    with pytest.raises(Refused) as refused:
        by(f"Bearer {SECRET}", policy, now=50.0)
    assert (401, "invalid_api_key") == (refused.value.status, refused.value.code)
    assert {"www-authenticate": 'Bearer realm="weft"'} == refused.value.headers


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer  ", "Basic eDp5", "Bearer sk-other"])
def test_another_secret_is_passed_over_where_none_is_needed_and_refused_where_one_is(
    authorization: str | None,
) -> None:
    assert "anonymous" == by(authorization, "local") == by(authorization, "anyone")
    with pytest.raises(Refused) as refused:
        by(authorization, "keys")
    assert 401 == refused.value.status


def test_a_key_without_the_scope_is_told_which_is_needed() -> None:
    context = replace(HERE, authorization=f"Bearer {SECRET}")
    with pytest.raises(Refused) as refused:
        authenticate(context, "admin", "keys", KEYS, 0.0)
    assert (403, "scope_missing") == (refused.value.status, refused.value.code)
    assert "This key's scopes are read; admin is needed here." == refused.value.sentence


def test_a_caller_whose_key_ended_since_is_refused_and_one_who_needs_none_is_not() -> None:
    recheck(Caller(KEY), KEYS, 49.9)
    recheck(NOBODY, {}, 1e9)
    for keys, now in ((KEYS, 50.0), ({}, 0.0)):
        with pytest.raises(Refused):
            recheck(Caller(KEY), keys, now)


def test_a_gateway_that_starts_says_when_to_come_again() -> None:
    found = starting()
    assert (503, "starting", {"retry-after": "1"}) == (found.status, found.code, found.headers)


def test_only_an_old_client_may_leave_out_the_host() -> None:
    check_host(AuthContext(None), http10=True)
    check_host(AuthContext(None, "localhost"), http10=False)
    with pytest.raises(Refused) as refused:
        check_host(AuthContext(None), http10=False)
    assert (400, "no_host") == (refused.value.status, refused.value.code)


def test_a_context_is_read_from_headers_and_names_one_that_came_twice() -> None:
    once = [(b"host", b"h"), (b"authorization", b"a"), (b"origin", b"o")]
    assert AuthContext("p", "h", "o", "a") == auth_context(once, "p")
    for header in (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"):
        assert auth_context([(header, b"x")], None).forwarded
    assert not auth_context([(b"x-forwarded-proto", b"https")], None).forwarded
    assert "Host" == auth_context([*once, (b"host", b"h")], None).doubled
    assert "Authorization" == auth_context([*once, (b"authorization", b"a")], None).doubled
    assert auth_context([*once, (b"origin", b"o")], None).doubled is None
