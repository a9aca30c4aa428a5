"""A file at an address: what its first bytes tell, and what a server may do that is not taken."""

from collections.abc import Generator

import pytest
from weft_contracts.facts.source import HttpsSource, SourceFile
from weft_files.reach import Reach
from weft_sources.listing import Listing, addresses, list_source, open_ranged, read_small
from weft_sources.ranged import MOST_READ, RangedFile
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings
from weft_testing.web_server import WebFile, WebServer, web_server

WEIGHTS = b"GGUF" + bytes(range(256)) * 20_000


@pytest.fixture
def web() -> Generator[WebServer]:
    with web_server() as server:
        yield server


def settings_for(*servers: WebServer, timeout_s: float = 10.0) -> SourceSettings:
    return SourceSettings(reach=Reach([f"127.0.0.1:{each.server.port}" for each in servers]), timeout_s=timeout_s)


def listed(url: str, settings: SourceSettings) -> Listing:
    return list_source(HttpsSource(url=url), ("gguf",), settings)


def refusal(url: str, settings: SourceSettings) -> str:
    with pytest.raises(SourceRefused) as refused:
        listed(url, settings)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_file_is_known_by_its_first_four_bytes(web: WebServer) -> None:
    url = web.put("/models/m-Q4_0.gguf", WebFile(WEIGHTS, etag='"v1"'))
    listing = listed(url, settings_for(web))
    assert (SourceFile(name="m-Q4_0.gguf", size=len(WEIGHTS), checksum="etag:v1"),) == listing.files
    assert [("/models/m-Q4_0.gguf", "bytes=0-3")] == web.ranges
    assert 4 == web.sent


@pytest.mark.parametrize("etag", ['W/"v1"', "", '"with space"', '"a"b"', "v1"])
def test_a_weak_or_odd_etag_is_no_checksum(web: WebServer, etag: str) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS, etag=etag))
    assert "" == listed(url, settings_for(web)).files[0].checksum


def test_a_server_without_ranges_is_listed_and_its_body_left(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(b"GGUF" + bytes(30 << 20), ranges=False))
    assert (30 << 20) + 4 == listed(url, settings_for(web)).files[0].size


def test_an_address_that_names_no_file_is_taken_if_it_is_gguf(web: WebServer) -> None:
    web.put("/download", WebFile(WEIGHTS))
    listing = listed(f"{web.url}/download?id=7", settings_for(web))
    assert "model.gguf" == listing.files[0].name
    (address,) = addresses(listing.source, listing.files[0], settings_for(web))
    assert (f"{web.url}/download?id=7", f"{web.url}/download") == (address.url, address.said)


def test_all_parts_of_a_split_model_lie_beside_the_first(web: WebServer) -> None:
    for number in (1, 2, 3):
        web.put(f"/a b/m-{number:05}-of-00003.gguf", WebFile(WEIGHTS + bytes(number)))
    listing = listed(f"{web.url}/a%20b/m-00001-of-00003.gguf", settings_for(web))
    assert [len(WEIGHTS) + number for number in (1, 2, 3)] == [file.size for file in listing.files]
    (address,) = addresses(listing.source, listing.files[2], settings_for(web))
    assert f"{web.url}/a%20b/m-00003-of-00003.gguf" == address.url
    assert "name the first" in refusal(f"{web.url}/a%20b/m-00002-of-00003.gguf", settings_for(web))


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (WebFile(b"<html>"), "is no GGUF file: it does not begin with GGUF"),
        (WebFile(b"GG"), "is no GGUF file"),
        (WebFile(b""), "is an empty file"),
        (WebFile(WEIGHTS, length="", ranges=False), "does not say how large it is"),
        (WebFile(WEIGHTS, length="-1", ranges=False), "does not say how large it is"),
        (WebFile(WEIGHTS, length="9" * 30, ranges=False), "does not say how large it is"),
        (WebFile(status=404), "is not there (404): check the address"),
        (WebFile(status=403), "may not be read by this node (403)"),
        (WebFile(status=204), "answers 204: want an address that gives the file itself"),
    ],
)
def test_what_is_no_file_that_can_be_fetched_is_refused(web: WebServer, file: WebFile, said: str) -> None:
    url = web.put("/m.gguf", file)
    assert said in refusal(f"{url}?token=hidden-7", settings_for(web))
    assert "hidden-7" not in refusal(f"{url}?token=hidden-7", settings_for(web))


def test_an_engine_of_safetensors_is_not_given_a_gguf_file(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS))
    with pytest.raises(SourceRefused, match="holds nothing that this engine loads: it takes safetensors files"):
        list_source(HttpsSource(url=url), ("safetensors",), settings_for(web))


def test_a_server_in_trouble_may_be_asked_later(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(status=503))
    with pytest.raises(SourceAway, match="answers 503: try again later"):
        listed(url, settings_for(web))


def test_a_server_that_breaks_off_is_asked_three_times(web: WebServer) -> None:
    with web_server() as gone:
        url = gone.put("/m.gguf", WebFile(WEIGHTS))
        settings = settings_for(gone)
    with pytest.raises(SourceAway, match="it was asked 3 times"):
        listed(url, settings)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/m.gguf",
        "https://127.0.0.1:1/m.gguf",
        "https://169.254.169.254/m.gguf",
        "https://[::1]/m.gguf",
    ],
)
def test_servers_of_the_own_network_are_not_asked(url: str) -> None:
    assert "not asked" in refusal(url, SourceSettings()) or "plain http" in refusal(url, SourceSettings())


def test_a_user_in_an_address_is_refused_and_not_repeated() -> None:
    assert "hunter2" not in refusal("https://user:hunter2@example.com/m.gguf", SourceSettings())


def test_a_redirect_is_followed_only_to_a_server_that_the_operator_names(web: WebServer) -> None:
    with web_server() as other:
        target = other.put("/there.gguf", WebFile(WEIGHTS))
        url = web.put("/m.gguf", WebFile(redirect=target))
        said = refusal(url, settings_for(web))
        assert "leads on to 127.0.0.1: name that address itself, or the host in WEFT_SOURCES_ALLOW" in said
        assert {} == dict(other.asked)
        assert HttpsSource(url=target) == listed(url, settings_for(web, other)).source


@pytest.mark.parametrize("target", ["https://169.254.169.254/x.gguf", "file:///etc/passwd", "http://[", ""])
def test_a_redirect_to_what_is_no_server_to_ask_is_refused(web: WebServer, target: str) -> None:
    url = web.put("/m.gguf", WebFile(status=302, headers={"Location": target}, redirect=target))
    assert "/m.gguf" in refusal(url, settings_for(web))


def test_redirects_that_lead_in_a_circle_end(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(redirect="/m.gguf"))
    assert "leads on more than 5 times" in refusal(url, settings_for(web))
    assert 6 == web.asked["GET /m.gguf"]


def test_a_redirect_to_a_signed_address_does_not_become_the_source(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(redirect=f"{web.url}/n.gguf?signature=secret"))
    said = refusal(url, settings_for(web))
    assert "leads on to a signed address" in said
    assert "secret" not in said


def test_ranges_bring_what_is_read_and_little_more(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(b"GGUF" + bytes(64 << 20)))
    listing, settings = listed(url, settings_for(web)), settings_for(web)
    web.sent = 0
    with open_ranged(listing.source, listing.files[0], settings) as opened:
        assert b"GGUF" == opened.read(4)
        assert (40 << 20) == opened.seek(40 << 20)
        assert bytes(10) == opened.read(10)
        assert b"GGUF" == (opened.seek(0), opened.read(4))[1]
    assert 2 << 20 == web.sent


def test_whatever_is_read_is_what_is_there(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS))
    listing, settings = listed(url, settings_for(web)), settings_for(web)
    with open_ranged(listing.source, listing.files[0], settings) as opened:
        for begin, length in ((0, 10), (1_048_570, 20), (3, 4_000_000), (len(WEIGHTS) - 5, 50), (9_999_999, 1)):
            opened.seek(begin)
            assert WEIGHTS[begin : begin + length] == opened.read(length)


def test_a_file_that_changed_since_it_was_listed_is_not_read(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS, etag='"v1"'))
    listing, settings = listed(url, settings_for(web)), settings_for(web)
    web.put("/m.gguf", WebFile(WEIGHTS, etag='"v2"'))
    with pytest.raises(SourceRefused, match="changed since it was listed"):
        open_ranged(listing.source, listing.files[0], settings).read(4)
    web.put("/m.gguf", WebFile(WEIGHTS + b"!"))
    with pytest.raises(SourceRefused, match="changed since it was listed"):
        open_ranged(listing.source, listing.files[0], settings).read(4)


def test_a_large_file_is_not_read_from_a_server_without_ranges(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS, ranges=False))
    listing, settings = listed(url, settings_for(web)), settings_for(web)
    with pytest.raises(SourceRefused, match="want a server with ranges"):
        open_ranged(listing.source, listing.files[0], settings).read(4)


def test_a_small_file_is_read_whole_from_a_server_without_ranges(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(b"GGUF-small", ranges=False))
    listing, settings = listed(url, settings_for(web)), settings_for(web)
    assert b"GGUF-small" == read_small(listing.source, listing.files[0], settings, 100)


def test_a_body_that_is_cut_is_refused(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS))
    listing, settings = listed(url, settings_for(web)), settings_for(web)
    web.files["/m.gguf"].cut_after = 1000
    with pytest.raises(SourceRefused, match="ends after 1000 of"):
        open_ranged(listing.source, listing.files[0], settings).read(4)


def test_a_slow_drip_ends(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS))
    settings = settings_for(web, timeout_s=0.5)
    listing = listed(url, settings)
    web.files["/m.gguf"].drip = 10
    with pytest.raises(SourceAway, match="it was asked 3 times"):
        open_ranged(listing.source, listing.files[0], settings).read(4)


def test_reading_headers_never_brings_more_than_its_bound(web: WebServer) -> None:
    url = web.put("/m.gguf", WebFile(WEIGHTS))
    listing, settings = listed(url, settings_for(web)), settings_for(web)
    raw = RangedFile(lambda: addresses(listing.source, listing.files[0], settings)[0], listing.files[0], settings)
    raw.came = MOST_READ - 10
    web.sent = 0
    with pytest.raises(SourceRefused, match="header of more than 256 MiB"):
        raw.read(4)
    assert 0 == web.sent
