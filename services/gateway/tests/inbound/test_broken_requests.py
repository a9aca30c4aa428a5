"""What is no request, or never becomes one, and what fails here: each a sentence in its route's form, and an end."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from weft_gateway.inbound.http import auth_middleware, exchange, hot_path_protocol
from weft_gateway.inbound.inference.request_dispatcher import RequestDispatcher

Fronts = Any
WHOLE = {"model": "sim", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}


async def test_what_is_no_http_is_a_400(fronts: Fronts) -> None:
    front = await fronts.open()
    wire = await fronts.connect(front)
    wire.send(b"hello\r\n\r\n")
    said = await wire.answer()
    assert 400 == said.status
    assert "application/problem+json" == said.headers["content-type"]
    assert await wire.ended()
    wire = await fronts.connect(front)
    wire.send(b"POST /v1/embeddings HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
    assert "malformed_http" == (await wire.answer()).json()["error"]["code"]


async def test_headers_without_end_are_refused(fronts: Fronts) -> None:
    front = await fronts.open()
    for flood in (b"x-%d: " + b"a" * 1000 + b"\r\n", b"%0999d" + b"a"):
        wire = await fronts.connect(front)
        wire.send(b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nx-a: ")
        for i in range(400):
            wire.send(flood % i)
        said = await wire.answer()
        assert 431 == said.status
        assert "head_too_large" == said.json()["error"]["code"]


CHUNKED = b"host: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_what_stands_around_chunks_and_behind_the_last_is_bounded_like_a_head(fronts: Fronts) -> None:
    front = await fronts.open()
    route = b"POST %b HTTP/1.1\r\n" + CHUNKED
    for path in (b"/v1/completions", b"/api/node/register"):
        for begun, more in (
            (b"2\r\n{}\r\n0\r\n", b"x-more: " + b"a" * 1000 + b"\r\n"),  # trailers without end
            (b"2\r\n{}\r\n0\r\nx-more: ", b"a" * 1000),  # one that has none
            (b"2\r\n{}\r\n", b";" + b"a" * 1000),  # a chunk's extension
        ):
            wire = await fronts.connect(front)
            wire.send(route % path + begun)
            await asyncio.sleep(0.02)
            if more[:1] == b";":
                wire.send(b"2")
            # when far more comes than a head may have
            with suppress(ConnectionError):
                for _ in range(2000):
                    wire.send(more)
                    await wire.writer.drain()
            # then the connection is over, with a sentence where the client still reads
            with suppress(ConnectionError):
                said = await wire.answer()
                assert (431, "head_too_large") == (said.status, code_of(said))
            assert await wire.ended()


async def test_a_client_reads_why_its_trailers_are_too_many(fronts: Fronts) -> None:
    front = await fronts.open()
    wire = await fronts.connect(front)
    wire.send(b"POST /v1/completions HTTP/1.1\r\n" + CHUNKED + b"2\r\n{}\r\n0\r\n")
    await asyncio.sleep(0.05)
    for _ in range(hot_path_protocol.MAX_HEAD_BYTES // 1024):
        wire.send(b"x-more: " + b"a" * 1020 + b"\r\n")
        await wire.writer.drain()
    wire.send(b"x" * 1024)
    said = await wire.answer()
    assert (431, "head_too_large") == (said.status, code_of(said))
    assert "trailers" in said.json()["error"]["message"]


async def test_garbage_behind_a_request_is_never_taken_for_its_answer(fronts: Fronts) -> None:
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    # given a request that runs, whole or streamed
    for stream in (False, True):
        wire = await fronts.connect(front)
        wire.post(WHOLE | {"stream": stream})
        await engine.has(1)
        if stream:
            engine.step("one")
            await wire.head()
        # when something comes behind it that is no HTTP
        wire.send(b"hello\r\n\r\n")
        # then the connection ends, and no other answer stands in its place or in its middle
        async with asyncio.timeout(30):
            assert b"HTTP/1.1 400" not in await wire.reader.read()
        await engine.has(0)


def code_of(said: Any) -> str:
    body = said.json()
    return body["error"]["code"] if "error" in body else body["code"]


async def test_what_is_begun_and_never_sent_is_not_waited_for(fronts: Fronts, monkeypatch: pytest.MonkeyPatch) -> None:
    for bounded in (exchange, auth_middleware):
        monkeypatch.setattr(bounded, "BODY_WAIT_S", 0.1)
    monkeypatch.setattr(exchange, "LINGER_S", 0.1)
    front = await fronts.open()
    json = b"content-type: application/json\r\n"
    half = b"POST %b HTTP/1.1\r\nhost: localhost\r\n" + json + b"content-length: 9\r\n\r\n{"
    for sent, code in (
        (b"", "head_late"),
        (b"POST /v1/comp", "head_late"),
        (half % b"/v1/completions", "body_late"),
        (half % b"/v1/nothing", "body_late"),
    ):
        # a machine that is slow with a head must not have it called late
        monkeypatch.setattr(hot_path_protocol, "HEAD_WAIT_S", 0.1 if code == "head_late" else 30.0)
        wire = await fronts.connect(front)
        wire.send(sent)
        said = await wire.answer()
        assert 408 == said.status
        assert code in said.body.decode()
        assert await wire.ended()
    # nor where the answer is known before the body
    wire = await fronts.connect(front)
    wire.send((half % b"/v1/completions").replace(b"localhost", b"evil.example"))
    assert 403 == (await wire.answer()).status
    assert await wire.ended()


async def test_what_stands_behind_an_answer_holds_no_connection(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_path_protocol, "HEAD_WAIT_S", 0.2)
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    for sent, status, behind, late in (
        (None, 200, b"\r\n", True),  # an empty line
        (b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n", 200, b"\r\n", True),
        # a part of a body that nobody reads; another answer would be taken for its own
        (b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n", 200, b"a", False),
    ):
        # given a connection that was answered and is kept
        wire = await fronts.connect(front)
        if sent is None:
            wire.post(WHOLE)
            await engine.has(1)
            engine.finish_all()
        else:
            wire.send(sent)
        assert status == (await wire.answer()).status
        # when something comes that begins no other request, and nothing more
        wire.send(behind)
        # then it ends
        if late:
            assert "head_late" in (await wire.answer()).body.decode()
        assert await wire.ended()


async def test_an_answer_that_takes_long_is_not_taken_for_a_late_request(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_path_protocol, "HEAD_WAIT_S", 0.2)
    front = await fronts.open()
    engine = (await front.a_replica()).engine
    wire = await fronts.connect(front)
    whole = wire.request(WHOLE)
    wire.send(whole + whole[:30])
    await engine.has(1)
    await asyncio.sleep(0.5)
    engine.finish_all()
    assert 200 == (await wire.answer()).status
    assert 408 == (await wire.answer()).status


async def test_what_fails_in_the_gateway_is_a_500_in_openais_form(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(RequestDispatcher, "begin", fails)
    front = await fronts.open()
    wire = await fronts.connect(front)
    for _ in range(2):
        wire.post(WHOLE)
        said = await wire.answer()
        assert 500 == said.status
        assert "server_error" == said.json()["error"]["type"]
