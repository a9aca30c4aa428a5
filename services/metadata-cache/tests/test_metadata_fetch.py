"""Fetching one file from a real HTTP server: whole and verified, or not at all."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import pytest
from weft_metadata_cache.domain.due_fetches import Fetch
from weft_metadata_cache.outbound.fetch import Fetcher, NotServed
from weft_sources.environment import source_settings
from weft_sources.settings import SourceSettings
from weft_testing.hub_server import hub_server
from weft_testing.wanted_files import QUICK

from .files_server import Answer, FilesServer, files_server
from .offers import fetch_of, file

PATH = "/metadata/m-1-1/tokenizer.json"
BOUNDS = dataclasses.replace(QUICK, tries=3)
BODY = b'{"model": {}}' * 1000


@pytest.fixture
async def files() -> AsyncIterator[FilesServer]:
    async with files_server() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with Fetcher(SourceSettings(), timeout=20, bounds=BOUNDS) as fetcher:
        yield fetcher


async def content(fetcher: Fetcher, fetch: Fetch) -> bytes:
    """What comes, and nothing of it is left when it was dropped."""
    blob = await fetcher.whole(fetch)
    body = await asyncio.to_thread(blob.path.read_bytes)
    await fetcher.drop(blob)
    assert not await asyncio.to_thread(blob.path.exists)
    return body


@pytest.mark.parametrize("length", [True, False])
async def test_a_file_of_exactly_the_registered_size_is_accepted(
    files: FilesServer, fetcher: Fetcher, length: bool
) -> None:
    files.answers[PATH] = Answer(BODY, length=length)

    assert BODY == await content(fetcher, fetch_of(file(BODY), files.port))


async def test_an_empty_file_is_a_file(files: FilesServer, fetcher: Fetcher) -> None:
    files.answers[PATH] = Answer(b"")

    assert b"" == await content(fetcher, fetch_of(file(b""), files.port))


async def test_another_content_of_the_same_size_is_a_checksum_mismatch(files: FilesServer, fetcher: Fetcher) -> None:
    files.answers[PATH] = Answer(b"hello world")

    with pytest.raises(NotServed, match=r"checksum mismatch: blake3:d74981"):
        await fetcher.whole(fetch_of(file(b"hello wurld"), files.port))


@pytest.mark.parametrize("length", [True, False])
async def test_more_than_the_registered_size_exceeds_the_cap(
    files: FilesServer, fetcher: Fetcher, length: bool
) -> None:
    files.answers[PATH] = Answer(b"x" * 35, length=length)

    with pytest.raises(NotServed, match=r"exceeds cap: .* 8 "):
        await fetcher.whole(fetch_of(file(b"x" * 8), files.port))
    assert 1 == len(files.asked)


async def test_less_than_the_registered_size_is_refused(files: FilesServer, fetcher: Fetcher) -> None:
    files.answers[PATH] = Answer(BODY[:-1])

    with pytest.raises(NotServed, match=r"is short: 12999 bytes are announced, 13000 are wanted"):
        await fetcher.whole(fetch_of(file(BODY), files.port))


async def test_a_redirect_is_refused_even_to_the_right_file(files: FilesServer, fetcher: Fetcher) -> None:
    files.answers[PATH] = Answer(status=302, headers={"location": f"http://127.0.0.1:{files.port}/other"})
    files.answers["/other"] = Answer(BODY)

    with pytest.raises(NotServed, match="redirect"):
        await fetcher.whole(fetch_of(file(BODY), files.port))
    assert [PATH] == files.asked


async def test_what_the_node_does_not_have_is_not_asked_for_again(files: FilesServer, fetcher: Fetcher) -> None:
    with pytest.raises(NotServed, match="answers 404"):
        await fetcher.whole(fetch_of(file(BODY), files.port))
    assert 1 == len(files.asked)


async def test_a_fault_that_may_pass_is_tried_again(files: FilesServer, fetcher: Fetcher) -> None:
    files.first[PATH] = Answer(status=500)
    files.answers[PATH] = Answer(BODY)

    assert BODY == await content(fetcher, fetch_of(file(BODY), files.port))
    assert 2 == len(files.asked)


async def test_the_tries_are_limited(files: FilesServer, fetcher: Fetcher) -> None:
    files.answers[PATH] = Answer(status=500)

    with pytest.raises(NotServed, match="answers 500"):
        await fetcher.whole(fetch_of(file(BODY), files.port))
    assert 3 == len(files.asked)


async def test_a_node_that_is_not_there_is_unreachable(files: FilesServer, fetcher: Fetcher) -> None:
    with pytest.raises(NotServed, match=r"tokenizer\.json can't be had: node node-1 "):
        await fetcher.whole(fetch_of(file(BODY), 1))


async def test_an_address_that_is_none_is_refused(files: FilesServer, fetcher: Fetcher) -> None:
    with pytest.raises(NotServed, match="has no address"):
        await fetcher.whole(fetch_of(file(BODY), files.port, host="127.0.0.999"))


async def test_an_answer_that_stalls_is_given_up(files: FilesServer) -> None:
    files.answers[PATH] = Answer(BODY, stall=asyncio.Event())

    async with Fetcher(SourceSettings(), timeout=0.2) as fetcher:
        with pytest.raises(NotServed, match="did not come within"):
            await fetcher.whole(fetch_of(file(BODY), files.port))


async def test_a_proxy_of_the_environment_is_not_asked(
    files: FilesServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    files.answers[PATH] = Answer(BODY)

    assert BODY == await content(fetcher, fetch_of(file(BODY), files.port))


async def test_a_fetch_that_is_cancelled_hangs_up(files: FilesServer, fetcher: Fetcher) -> None:
    files.answers[PATH] = Answer(BODY, stall=asyncio.Event())
    fetching = asyncio.create_task(fetcher.whole(fetch_of(file(BODY), files.port)))
    await asyncio.wait_for(files.asked_once.wait(), 30)

    fetching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await fetching
    await asyncio.wait_for(files.hung_up.wait(), 30)


async def test_what_its_node_does_not_give_comes_from_the_models_source(files: FilesServer) -> None:
    with hub_server() as hub:
        commit = hub.repository("o/m", {"tokenizer.json": BODY})
        sources = source_settings(hub=hub.url, allow=["127.0.0.1"], environ={})
        asked = fetch_of(file(BODY), files.port, elsewhere=(f"hf:o/m@{commit}#tokenizer.json",))

        async with Fetcher(sources, timeout=20, bounds=BOUNDS) as fetcher:
            assert BODY == await content(fetcher, asked)
            assert [PATH] == files.asked
            assert BODY == await content(fetcher, dataclasses.replace(asked, self_hosted=False))
            assert [PATH] == files.asked


async def test_a_gated_source_is_said_to_be_one_with_what_would_help() -> None:
    with hub_server() as hub:
        commit = hub.repository("o/m", {"tokenizer.json": BODY}, gated=True)
        sources = source_settings(hub=hub.url, allow=["127.0.0.1"], environ={})
        asked = fetch_of(file(BODY), 1, elsewhere=(f"hf:o/m@{commit}#tokenizer.json",))

        async with Fetcher(sources, timeout=20, bounds=BOUNDS) as fetcher:
            with pytest.raises(NotServed) as away:
                await fetcher.whole(dataclasses.replace(asked, self_hosted=False))

    assert (
        f"tokenizer.json can't be had: o/m/tokenizer.json at {hub.url} is gated or private, and the metadata-cache has "
        "no right to it: have the model's workers offer it themselves (WEFT_METADATA_SELF_HOST), or give the "
        "metadata-cache a right to it (HF_TOKEN, AWS_ACCESS_KEY_ID)"
    ) == str(away.value)


async def test_the_cap_is_held_before_anybody_is_asked(files: FilesServer) -> None:
    files.answers[PATH] = Answer(BODY)

    async with Fetcher(SourceSettings(), most_bytes=len(BODY) - 1, bounds=BOUNDS) as fetcher:
        with pytest.raises(NotServed, match=r"exceeds cap: it has 13000 bytes, 12999 are the most"):
            await fetcher.whole(fetch_of(file(BODY), files.port))
    assert [] == files.asked
