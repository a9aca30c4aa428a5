"""What stands where a hub should may answer anything: every answer ends, in a listing or in one sentence."""

import gzip
import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest
from weft_contracts.facts.machine import MOST_LICENCE
from weft_contracts.facts.source import HfSource
from weft_files.reach import Reach
from weft_sources.listing import list_source
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings
from weft_testing.web_server import WebFile, WebServer, web_server

MODEL = "/api/models/maker/model"
SOURCE = HfSource(repository="maker/model")
COMMIT = "c" * 40


@pytest.fixture
def web() -> Generator[WebServer]:
    with web_server() as server:
        yield server


def settings_for(*servers: WebServer, timeout_s: float = 10.0) -> SourceSettings:
    reach = Reach([f"127.0.0.1:{each.server.port}" for each in servers])
    return SourceSettings(hub=servers[0].url, reach=reach, timeout_s=timeout_s)


def described(siblings: Any, **fields: Any) -> bytes:
    return json.dumps({"id": "maker/model", "sha": COMMIT, "siblings": siblings, **fields}).encode()


def refusal(settings: SourceSettings) -> str:
    with pytest.raises(SourceRefused) as refused:
        list_source(SOURCE, ("gguf",), settings)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1000
    return str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"id": "maker/model", "siblings": []}',
        described([], sha="main"),
        described([], sha="../../x"),
        described([{"size": 3}]),
        described([3]),
        described("m.gguf"),
        described([{"rfilename": "m.gguf", "size": 3, "lfs": {"size": 3}}]),
    ],
)
def test_an_answer_that_describes_no_repository_is_refused(web: WebServer, body: bytes) -> None:
    web.put(MODEL, WebFile(body))
    assert f"{web.url} answers with no description of maker/model" == refusal(settings_for(web))


@pytest.mark.parametrize("size", [-1, None, "three", 1 << 60, 1.5, [3]])
def test_a_file_of_no_size_is_none(web: WebServer, size: Any) -> None:
    web.put(MODEL, WebFile(described([{"rfilename": "m.gguf", "size": size}])))
    assert "holds nothing that this engine loads" in refusal(settings_for(web))


@pytest.mark.parametrize("checksum", ["", "x", "0" * 63, "Z" * 64, "0" * 64 + "\n", 7, None])
def test_a_checksum_that_is_none_is_left_out(web: WebServer, checksum: Any) -> None:
    lfs = {"sha256": checksum, "size": 3, "pointerSize": 1}
    web.put(MODEL, WebFile(described([{"rfilename": "m.gguf", "size": 3, "lfs": lfs, "blobId": "x"}])))
    (file,) = list_source(SOURCE, ("gguf",), settings_for(web)).files
    assert "" == file.checksum


def test_a_licence_is_shown_on_one_bounded_line(web: WebServer) -> None:
    siblings = [{"rfilename": "m.gguf", "size": 3}]
    web.put(MODEL, WebFile(described(siblings, cardData={"license": "evil\x1b[2J\n" * 1000})))
    licence = list_source(SOURCE, ("gguf",), settings_for(web)).licence
    assert licence.isprintable()
    assert MOST_LICENCE == len(licence)


def test_more_files_than_are_looked_at_are_refused(web: WebServer) -> None:
    web.put(MODEL, WebFile(described([{"rfilename": f"{number}.txt", "size": 1} for number in range(20_001)])))
    assert "maker/model has 20001 files: at most 20000 are looked at" == refusal(settings_for(web))


def test_an_answer_without_an_end_is_cut_off(web: WebServer) -> None:
    web.put(MODEL, WebFile(b" " * (65 << 20), length=""))
    assert "it is more than 64 MiB" in refusal(settings_for(web, timeout_s=60.0))


def test_a_packed_answer_is_not_unpacked(web: WebServer) -> None:
    web.put(MODEL, WebFile(gzip.compress(bytes(1 << 20)), headers={"Content-Encoding": "gzip"}))
    assert "it is packed" in refusal(settings_for(web))


def test_an_answer_that_drips_ends(web: WebServer) -> None:
    web.put(MODEL, WebFile(b" " * 100_000, drip=1))
    with pytest.raises(SourceAway, match=r"did not answer within 0\.5 s"):
        list_source(SOURCE, ("gguf",), settings_for(web, timeout_s=0.5))


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest", "http://10.0.0.1/x", "https://[::1]/x"])
def test_a_hub_leads_nobody_into_the_own_network(web: WebServer, target: str) -> None:
    web.put(MODEL, WebFile(redirect=target))
    assert f"{web.url} " in refusal(settings_for(web))


def test_a_hub_that_leads_on_to_another_server_does_not_take_the_token_there(web: WebServer) -> None:
    with web_server() as other:
        heard: list[str] = []
        target = other.put("/x", WebFile(described([{"rfilename": "m.gguf", "size": 3}])))
        other.hear = lambda headers: heard.append(headers.get("Authorization") or "")
        web.put(MODEL, WebFile(redirect=target))
        list_source(SOURCE, ("gguf",), replace(settings_for(web, other), hub_token="hf_secret"))
        assert [""] == heard


def test_a_hub_that_leads_in_a_circle_is_left(web: WebServer) -> None:
    web.put(MODEL, WebFile(redirect=MODEL))
    assert "leads on too often" in refusal(settings_for(web))
