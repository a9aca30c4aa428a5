"""Rules for single headers: what says that a body is JSON, and which ids a caller may give its request."""

import pytest
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_headers import check_json, checked_correlation_id, header


def refused(*headers: tuple[bytes, bytes]) -> Refused:
    with pytest.raises(Refused) as caught:
        check_json(headers)
    assert 415 == caught.value.status
    return caught.value


@pytest.mark.parametrize(
    "kind",
    [
        b"application/json",
        b"Application/JSON",
        b"application/json; charset=utf-8",
        b"application/json;charset=utf-8",
        b"application/vnd.api+json",
    ],
)
def test_json_is_what_says_so(kind: bytes) -> None:
    check_json([(b"x", b"y"), (b"content-type", kind)])
    check_json([(b"content-type", kind), (b"content-encoding", b"Identity")])
    check_json([(b"content-type", kind), (b"content-encoding", b"")])


@pytest.mark.parametrize("kind", [b"text/plain", b"text/x+json", b"application/jsonl", b"application/xml", b"x+json"])
def test_what_says_that_it_is_something_else_is_refused_with_what_it_said(kind: bytes) -> None:
    found = refused((b"content-type", kind))
    assert f"The header Content-Type is {kind.decode()!r}; " in found.sentence
    assert ("content-type", "not_json") == (found.param, found.code)


def test_a_body_that_does_not_say_what_it_is_or_that_is_compressed_is_refused() -> None:
    assert "Content-Type is missing" in refused().sentence
    assert "content-encoding" == refused((b"content-type", b"application/json"), (b"content-encoding", b"gzip")).param


def test_what_was_said_is_repeated_up_to_a_bound() -> None:
    assert f"is {'a' * 100!r};" in refused((b"content-type", b"a" * 200)).sentence


def test_the_first_header_of_a_name_counts() -> None:
    headers = [(b"b", b"0"), (b"a", b"1"), (b"a", b"2")]
    assert ("1", None) == (header(headers, b"a"), header(headers, b"c"))


@pytest.mark.parametrize("given", ["a", "A-z_0.9:x", "a" * 64, None])
def test_a_request_bears_the_id_that_its_caller_gave(given: str | None) -> None:
    assert given == checked_correlation_id(given)


@pytest.mark.parametrize("given", ["", "a" * 65, "a b", "a\n", "ä"])
def test_an_id_that_could_not_stand_everywhere_is_refused(given: str) -> None:
    with pytest.raises(Refused) as caught:
        checked_correlation_id(given)
    assert (400, "x-request-id") == (caught.value.status, caught.value.param)
