"""Who gets the page, when it is sent again, and who may fetch it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_gateway.domain.access import check_fetch, needs_log
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_headers import matches_entity_tag, takes_gzip, wants_html


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", True),
        ("text/html", True),
        ("TEXT/HTML; q=0.5", True),
        ("text/html, application/json", True),
        ("application/xhtml+xml", True),
        ("text/json, text/html;q=0.9", False),
        ("application/json", False),
        ("application/json, text/html;q=0.9", False),
        ("text/html;q=0", False),
        ("text/html;q=much", False),
        ("*/*", False),
        ("", False),
        (None, False),
    ],
)
def test_html_goes_to_who_names_it_and_likes_json_no_better(accept: str | None, html: bool) -> None:
    assert html is wants_html(accept)


@given(st.text(max_size=80))
def test_no_accept_header_is_too_strange(accept: str) -> None:
    assert wants_html(accept) in (True, False)


@pytest.mark.parametrize("header", ['"a"', 'W/"a"', '"x", "a"', '"x",W/"a"', "*"])
def test_a_tag_that_the_client_has_is_known_again(header: str) -> None:
    assert matches_entity_tag(header, '"a"')


@pytest.mark.parametrize("header", [None, "", '"b"', "a", '"ab"', '"b", *'])
def test_another_tag_is_not(header: str | None) -> None:
    assert not matches_entity_tag(header, '"a"')


@pytest.mark.parametrize(
    ("site", "mode"), [("cross-site", "no-cors"), ("same-site", "no-cors"), ("cross-site", "cors")]
)
def test_a_foreign_page_may_not_fetch_even_without_naming_its_origin(site: str, mode: str) -> None:
    with pytest.raises(Refused) as refused:
        check_fetch(site, mode)
    assert 403 == refused.value.status


@pytest.mark.parametrize(
    ("site", "mode"), [(None, None), ("same-origin", "cors"), ("none", "navigate"), ("cross-site", "navigate")]
)
def test_programs_the_page_itself_and_a_followed_link_may(site: str | None, mode: str | None) -> None:
    check_fetch(site, mode)


def test_the_page_is_there_before_the_log_is_folded() -> None:
    assert not needs_log("/")
    assert not needs_log("/page/main.js")
    assert not needs_log("/healthz")
    assert needs_log("/api/status")
    assert needs_log("/pages")


@pytest.mark.parametrize(
    ("accept_encoding", "gzip"),
    [
        (None, False),
        ("", False),
        ("gzip, deflate, br", True),
        ("GZIP", True),
        ("x-gzip;q=0.1", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity", False),
        ("br;q=1.0, gzip;q=0.5", True),
        ("gzip;q=half", False),
    ],
)
def test_gzip_is_for_who_takes_it(accept_encoding: str | None, gzip: bool) -> None:
    assert gzip is takes_gzip(accept_encoding)


@given(st.text(max_size=80))
def test_no_accept_encoding_header_is_too_strange(accept_encoding: str) -> None:
    assert takes_gzip(accept_encoding) in (True, False)
