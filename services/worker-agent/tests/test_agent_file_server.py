"""What a node's file server answers: ranges as they are asked for, nothing to who may not, not more than it can."""

import asyncio
import hashlib
import random
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.digest import files_digest
from weft_contracts.facts.source import HttpsSource, SourceFile
from weft_contracts.facts.values import ModelSpec
from weft_files import Store, Wanted
from weft_files.checksum import Checksum
from weft_files.partial import Partial, Version
from weft_sources.environment import source_settings
from weft_worker_agent.domain.byte_ranges import NotThere, asked_range
from weft_worker_agent.inbound import file_server
from weft_worker_agent.inbound.file_server import CHUNK_S, answer_s
from weft_worker_agent.outbound.files.offered_files import OfferedFile
from weft_worker_agent.outbound.mesh.signed_words import RENEW_S, SignedHeaders

from .mesh_of_nodes import Mesh, Node

BODY = random.Random(3).randbytes(200_000)
SUM = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
SPEC = ModelSpec(
    source=HttpsSource(url="https://example.com/a.gguf"),
    engine="llama.cpp",
    files=(SourceFile(name="a.gguf", size=len(BODY), checksum=SUM),),
)
FILES = files_digest(SPEC)
WANTED = Wanted("a.gguf", len(BODY), Checksum.parse(SUM), len(BODY))


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncGenerator[Mesh]:
    made = Mesh(source_settings(environ={"HF_HUB_CACHE": "/nowhere"}), tmp_path)
    async with made.stack:
        yield made


def store_of(mesh: Mesh, node: Node) -> Store:
    return Store(mesh.folder / node.name / "files", keep_free=0)


async def holder(mesh: Mesh, **more: Any) -> Node:
    """A node on which the model lies."""
    node = await mesh.node("holder", **more)
    store = store_of(mesh, node)
    aside = store.folder / "partial" / "aside.part"
    aside.write_bytes(BODY)
    blob = store.adopt(aside, blake3(BODY).hexdigest(), WANTED, ())
    store.lay_out(FILES, {"a.gguf": blob})
    return node


async def get(
    reader: Node, of: Node, *, range: str = "", path: str = f"/files/{FILES}/{SUM}", **headers: str
) -> httpx.Response:
    """What a reader is answered; headers are named with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    said = reader.words(FILES, of) | ({"range": range} if range else {}) | named
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{of.port}", trust_env=False) as client:
        return await client.get(path, headers=said)


GIVEN = {
    "": (200, 0, 200_000),
    "bytes=0-9": (206, 0, 10),
    "bytes=199990-": (206, 199_990, 200_000),
    "bytes=-5": (206, 199_995, 200_000),
    "bytes=-500000": (206, 0, 200_000),
    "bytes=100-999999999999": (206, 100, 200_000),
    "bytes=5-4": (200, 0, 200_000),
    "bytes=1-2,5-6": (200, 0, 200_000),
    "lines=1-2": (200, 0, 200_000),
    "bytes=-": (200, 0, 200_000),
}
"""Status, and which bytes come, by the range that is asked for."""


async def test_a_range_is_given_as_it_is_asked_for_and_416_behind_the_end(mesh: Mesh) -> None:
    one, two = await holder(mesh), await mesh.node("two")
    for said, (status, start, end) in GIVEN.items():
        answer = await get(two, one, range=said)
        assert (said, status, BODY[start:end]) == (said, answer.status_code, answer.content)
        if status == 206:
            assert f"bytes {start}-{end - 1}/200000" == answer.headers["content-range"]
    for said in ("bytes=200000-", "bytes=999999999-9999999999", "bytes=-0"):
        answer = await get(two, one, range=said)
        assert (said, 416, "bytes */200000") == (said, answer.status_code, answer.headers["content-range"])


@given(st.integers(0, 50), st.integers(0, 60), st.integers(0, 60))
def test_a_range_is_that_part_of_the_file_or_nothing(size: int, first: int, last: int) -> None:
    body = bytes(range(size))
    try:
        found = asked_range(f"bytes={first}-{last}", size)
    except NotThere:
        assert first >= size
        assert first <= last
    else:
        assert (body[slice(*found)] if found else None) == (body[first : last + 1] if first <= last else None)


REFUSED: list[tuple[str, dict[str, str], int]] = [
    (f"/files/{'0' * 16}/{SUM}", {}, 403),  # the words are for other files
    (f"/files/{FILES}/sha256:{'0' * 64}", {}, 404),
    (f"/files/{FILES}/etag:x", {}, 404),
    (f"/files/{FILES}/a.gguf", {}, 404),
    (f"/files/{FILES[:-1]}/{SUM}", {}, 404),
    (f"/files/{FILES}/{SUM}", {"weft_signature": "AAAA"}, 403),
    (f"/files/{FILES}/{SUM}", {"weft_signature": "not base64!"}, 401),
    (f"/files/{FILES}/{SUM}", {"weft_node": "n" * 41}, 401),
    (f"/files/{FILES}/{SUM}", {"weft_nonce": "soon"}, 401),
]


async def test_whatever_else_is_asked_for_is_refused_in_a_sentence(mesh: Mesh) -> None:
    one, two = await holder(mesh), await mesh.node("two")
    for path, headers, status in REFUSED:
        answer = await get(two, one, path=path, **headers)
        assert (path, headers, status) == (path, headers, answer.status_code)
        assert answer.json()["detail"]
    # nor are words for another holder any
    assert 403 == (await get(two, one, **two.words(FILES, two))).status_code


async def test_what_comes_is_given_as_far_as_it_is_here_and_waited_for_a_while(mesh: Mesh) -> None:
    one, two = await mesh.node("one", wait_s=0.3), await mesh.node("two")
    one.runs(SPEC)
    # given a file of which nothing is here, then a piece, then another one
    assert (503, "1") == (
        (answer := await get(two, one, range="bytes=0-199999")).status_code,
        answer.headers["retry-after"],
    )
    partial = Partial(store_of(mesh, one).partial_path(WANTED, ()), len(BODY), 1 << 16, tells_content=True)
    partial.begin(Version("a", ""))

    def comes(piece: int) -> None:
        begin, end = piece << 16, min((piece + 1) << 16, len(BODY))
        partial.write(begin, memoryview(BODY)[begin:end])
        partial.note(end, "a")

    comes(0)
    # then what is here of a range is given, and said to be no more
    answer = await get(two, one, range="bytes=10-199999")
    assert (206, BODY[10 : 1 << 16]) == (answer.status_code, answer.content)
    assert "bytes 10-65535/200000" == answer.headers["content-range"]
    # and what comes while it is waited for is given, too
    waiting = asyncio.create_task(get(two, one, range="bytes=65536-131071"))
    await asyncio.sleep(0.05)
    comes(1)
    assert BODY[1 << 16 : 2 << 16] == (await waiting).content
    # and the file is not given whole before it is
    assert 503 == (await get(two, one)).status_code
    partial.close()


async def test_as_many_are_answered_as_are_allowed_and_others_are_told_to_come_again(mesh: Mesh) -> None:
    one, two = await mesh.node("one", most=2, wait_s=0.7), await mesh.node("two")
    one.runs(SPEC)
    # given three that ask for what isn't here yet
    answers = await asyncio.gather(*(get(two, one) for _ in range(3)))
    # then two wait for it, and one is told to come again
    said = sorted(answer.json()["detail"] for answer in answers)
    assert "2 requests for files are answered already" == said[0]
    assert {f"{SUM} is still coming to this node"} == set(said[1:])
    assert {(503, "1")} == {(answer.status_code, answer.headers["retry-after"]) for answer in answers}
    # when they have gone, there is room again
    assert "still coming" in (await get(two, one)).json()["detail"]


async def test_one_node_takes_two_turns_at_most_and_leaves_the_others_to_others(mesh: Mesh) -> None:
    one, two, three = await mesh.node("one", wait_s=5.0), await mesh.node("two"), await mesh.node("three")
    one.runs(SPEC)
    # given a node that asks three times for what isn't here yet
    asking = [asyncio.create_task(get(two, one)) for _ in range(3)]
    try:
        # when it waits twice, then the third time it is told to come again
        (refused,), _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        detail = f"2 requests for files of the node {two.identity.node} are answered already"
        assert (503, detail) == ((answer := refused.result()).status_code, answer.json()["detail"])
        # and another one is answered
        assert 404 == (await get(three, one, path=f"/files/{FILES}/sha256:{'0' * 64}")).status_code
    finally:
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def test_a_large_file_is_given_by_ranges_alone_so_that_who_may_read_is_asked_again(mesh: Mesh) -> None:
    one, two = await holder(mesh, most_bytes=100_000), await mesh.node("two")
    for said in ("", "bytes=1-2,5-6"):
        answer = await get(two, one, range=said)
        assert (said, 413) == (said, answer.status_code)
        assert "the file has 200000 bytes: ask for a range of it, of which 100000 are given" == answer.json()["detail"]
    answer = await get(two, one, range="bytes=10-199999")
    assert (206, BODY[10:100_010]) == (answer.status_code, answer.content)


def test_an_answer_has_time_for_4096_bytes_a_second_and_never_less_than_one_chunk_has() -> None:
    assert [CHUNK_S, CHUNK_S, 16_384.0] == [answer_s(length) for length in (0, 4096, 64 << 20)]


async def test_an_answer_that_takes_too_long_ends_and_its_turn_is_anothers(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await holder(mesh, most=1), await mesh.node("two")
    gate, read = threading.Event(), OfferedFile.read

    def hangs(file: OfferedFile, at: int, most: int) -> bytes:
        gate.wait(20)
        return read(file, at, most)

    def at_once(length: int) -> float:
        return 0.05

    monkeypatch.setattr(OfferedFile, "read", hangs)
    monkeypatch.setattr(file_server, "answer_s", at_once)
    # given a disk that does not answer
    try:
        with pytest.raises(httpx.RemoteProtocolError):
            await get(two, one)
    finally:
        gate.set()
    # then the one turn that there is, is free
    monkeypatch.undo()
    assert 200 == (await get(two, one)).status_code


def test_a_readers_headers_are_signed_anew_when_they_are_old_and_are_of_one_signature() -> None:
    now, signed = [0.0], list[int]()

    def sign() -> dict[str, str]:
        signed.append(len(signed))
        return {"node": "n-a", "nonce": str(signed[-1]), "signature": f"of {signed[-1]}"}

    headers = SignedHeaders(sign, lambda: now[0])
    assert dict(headers) == dict(headers)
    now[0] = RENEW_S + 1
    assert {"weft-node": "n-a", "weft-nonce": "1", "weft-signature": "of 1"} == dict(headers)
