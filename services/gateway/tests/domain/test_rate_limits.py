"""How much is asked without a key, by whom it is counted, and whose word for an address is believed."""

import pytest
from weft_gateway.domain.access import Policy
from weft_gateway.domain.client_address import address_of, networks
from weft_gateway.domain.cors import Cors, origins
from weft_gateway.domain.rate_limiter import LIMITS, RateLimiter, too_often
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.token_buckets import CALLERS, TokenBuckets
from weft_gateway.settings import GatewaySettings
from weft_runtime.settings import BadSetting

PROXIES = networks("10.0.0.0/8, fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "counted"),
    [
        ("203.0.113.7", (), "203.0.113.7"),
        (None, ("203.0.113.7",), "local"),
        # an attacker's /64 is one; an address of version 4 is itself, however it is written
        ("2001:db8:1:2:3:4:5:6", (), "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", (), "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", (), "203.0.113.7"),
        ("fe80::1%eth0", (), "fe80::/64"),
        # a stranger's own word for where it comes from
        ("203.0.113.7", ("198.51.100.1",), "203.0.113.7"),
        # a trusted proxy's, from the last hop back to the first that is none of them
        ("10.0.0.1", ("198.51.100.1",), "198.51.100.1"),
        ("10.0.0.1", ("198.51.100.1, 203.0.113.7",), "203.0.113.7"),
        ("10.0.0.1", ("198.51.100.1", "203.0.113.7, 10.9.9.9"), "203.0.113.7"),
        ("10.0.0.1", ("198.51.100.1:4711",), "198.51.100.1"),
        ("fd00::1", ("[2001:db8::5]:80",), "2001:db8::/64"),
        ("fd00::1", ("[2001:db8::5]:[80]",), "2001:db8::/64"),  # only what is within the first brackets is read
        # what is no address is nobody's
        ("10.0.0.1", ("198.51.100.1, unknown",), "10.0.0.1"),
        ("10.0.0.1", ("198.51.100.1, unknown, 10.9.9.9",), "10.9.9.9"),
        ("10.0.0.1", ("",), "10.0.0.1"),
        ("10.0.0.1", (), "10.0.0.1"),
        ("10.0.0.1", ("10.9.9.9," * 5000,), "10.0.0.1"),
        ("10.0.0.1", ("198.51.100.1," + ",".join(["10.9.9.9"] * 40),), "10.9.9.9"),
    ],
)
def test_a_caller_is_counted_by_the_last_address_that_is_believed(
    peer: str | None, forwarded: tuple[str, ...], counted: str
) -> None:
    assert counted == address_of(peer, forwarded, PROXIES)


def test_nobody_is_believed_where_no_proxy_is_named() -> None:
    assert "10.0.0.1" == address_of("10.0.0.1", ("198.51.100.1",), ())


def tries(subject: RateLimiter, address: str, times: int, now: float = 0.0) -> int:
    """How many of them were taken."""
    taken = 0
    for _ in range(times):
        try:
            subject.count("join", address, now)
        except Refused:
            continue
        taken += 1
    return taken


def test_who_asks_too_much_waits_others_dont_and_all_together_are_bounded() -> None:
    subject = RateLimiter()
    one, total = LIMITS["join"]
    assert one.at_once == tries(subject, "a", 1000)
    assert one.at_once == tries(subject, "b", 1000)
    with pytest.raises(Refused) as refused:
        subject.count("join", "a", 0.0, "The token is not known.")
    assert (429, "1") == (refused.value.status, refused.value.headers["retry-after"])
    assert refused.value.sentence.startswith("The token is not known. Too many tries")
    # and from however many addresses it comes
    rest = sum(tries(subject, f"c-{n}", 1) for n in range(1000))
    assert total.at_once == 2 * one.at_once + rest


def test_a_thousand_nodes_behind_one_address_join_within_minutes() -> None:
    subject, joined, now = RateLimiter(), 0, 0.0
    while joined < 1000:
        joined += tries(subject, "a", 20, now)
        now += 1.0
    assert now < 180


def test_what_is_kept_is_bounded() -> None:
    subject = RateLimiter()
    for n in range(3 * CALLERS):
        tries(subject, f"a-{n}", 1, now=n)
    assert CALLERS == len(subject._of_one["join"]._spent)


@pytest.mark.parametrize("text", ["10.0.0.1/8", "proxy", "10.0.0.0/33", "*"])
def test_what_is_no_network_is_named(text: str) -> None:
    with pytest.raises(BadSetting, match="is no network; one looks like"):
        GatewaySettings(trusted_proxies=text).check()


PAGE = "https://app.example"


@pytest.mark.parametrize(
    ("path", "origin", "everywhere", "allowed"),
    [
        ("/v1/models", PAGE, False, True),
        ("/api/status", PAGE, False, False),
        ("/api/status", PAGE, True, True),
        ("/api/node/register", PAGE, True, False),
        ("/v1/models", "https://app.example.evil.example", False, False),
        ("/v1/models", "https://evil.example", True, False),
        ("/v1/models", "null", True, False),
        ("/v1/models", None, True, False),
    ],
)
def test_a_page_may_call_what_its_origin_was_allowed(
    path: str, origin: str | None, everywhere: bool, allowed: bool
) -> None:
    subject = Cors(frozenset({PAGE}), everywhere)
    assert allowed is subject.allows(path, origin)
    asked = [(b"access-control-request-method", b"POST"), (b"access-control-request-headers", b"authorization")]
    told = subject.preflight(path, origin, asked)
    assert allowed is (told is not None)
    named = dict(subject.headers(path, origin))
    assert allowed is (b"access-control-allow-origin" in named)
    assert subject.covers(path) is (named.get(b"vary") == b"origin")
    assert b"access-control-allow-credentials" not in dict(told or []) | named


def test_headers_that_no_browser_would_ask_for_are_not_repeated() -> None:
    asked = [(b"access-control-request-method", b"POST"), (b"access-control-request-headers", b"a\rb")]
    told = dict(Cors(frozenset({PAGE})).preflight("/v1/models", PAGE, asked) or [])
    assert told
    assert b"access-control-allow-headers" not in told


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", set[str]()),
        ("https://App.Example, http://localhost:3000", {"https://app.example", "http://localhost:3000"}),
        ("tauri://localhost", {"tauri://localhost"}),
    ],
)
def test_origins_are_read_as_browsers_write_them(text: str, found: set[str]) -> None:
    assert found == origins(text)


@pytest.mark.parametrize(
    ("origins", "policy", "words"),
    [
        ("https://app.example/", "keys", "is no origin"),
        ("app.example", "keys", "is no origin"),
        ("null", "keys", "is no origin"),
        ("https://*.example", "keys", "is no origin"),
        ("*", "local", "without a key"),
        ("*", "anyone", "without a key"),
    ],
)
def test_origins_that_can_not_be_meant_end_the_start_with_a_sentence(origins: str, policy: Policy, words: str) -> None:
    subject = GatewaySettings(cors_origins=origins, require_keys=policy == "keys", allow_anonymous=policy == "anyone")
    with pytest.raises(BadSetting, match=words):
        subject.check()


def test_a_bucket_says_how_long_until_the_next_try() -> None:
    bucket = TokenBuckets(2, every=8.0)
    assert 0.0 == bucket.wait("a", 0.0)
    bucket.spend("a", 0.0)
    assert 0.0 == bucket.wait("a", 0.0)
    bucket.spend("a", 0.0)
    assert [8.0, 2.0, 0.0] == [bucket.wait("a", now) for now in (0.0, 6.0, 8.0)]
    assert 0.0 == bucket.wait("b", 0.0)
    # time fills it up to its size and no further
    bucket.spend("a", 1000.0)
    assert 0.0 == bucket.wait("a", 1000.0)
    bucket.spend("a", 1000.0)
    assert 8.0 == bucket.wait("a", 1000.0)


@pytest.mark.parametrize(("wait", "seconds"), [(0.001, 1), (0.9, 1), (1.2, 2), (59.6, 60)])
def test_who_tried_too_often_is_told_in_whole_seconds_when_to_come_again(wait: float, seconds: int) -> None:
    refused = too_often(wait, "The key is not known.")
    assert (429, "too_often", {"retry-after": str(seconds)}) == (refused.status, refused.code, refused.headers)
    assert f"The key is not known. Too many tries; try again in {seconds} s." == refused.sentence
    assert f"Too many tries; try again in {seconds} s." == too_often(wait).sentence


def test_of_too_many_callers_the_longest_unseen_is_forgotten() -> None:
    bucket = TokenBuckets(1, every=8.0)
    for number in range(CALLERS):
        bucket.spend(f"c{number}", 0.0)
    bucket.spend("c0", 0.0)
    bucket.spend("new", 0.0)
    assert [16.0, 0.0, 8.0, 8.0] == [bucket.wait(caller, 0.0) for caller in ("c0", "c1", "c2", "new")]
