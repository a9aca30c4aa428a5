"""What anyone may send to a small server, who is not known yet, costs little and ends."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from weft_runtime import bounded_http, web
from weft_testing.served import served


async def _length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(routes=[Route("/length", _length, methods=["PUT"])])
    async with served(web.server(app, "127.0.0.1", 0)) as client:
        yield client


async def _sent(client: httpx.AsyncClient, *pieces: bytes, times: int = 1) -> bytes:
    """What is answered to bytes that are sent until the server closes, or so often."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    try:
        async with asyncio.timeout(20):
            for piece in pieces[:-1]:
                writer.write(piece)
            for _ in range(times):
                writer.write(pieces[-1])
                await writer.drain()
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


START = b"PUT /length HTTP/1.1\r\nhost: x\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((START + b"a: ", b"a" * (1 << 20)), id="one header"),
        pytest.param((START, b"a: b\r\n" * 10_000), id="many headers"),
        pytest.param((b"PUT /", b"a" * (1 << 20)), id="an address"),
        pytest.param((START + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n" * 10_000), id="trailers"),
        pytest.param((START + b"transfer-encoding: chunked\r\n\r\n1;", b"a" * (1 << 20)), id="a chunk's extension"),
    ],
)
async def test_a_head_without_end_is_refused_after_its_bound(
    client: httpx.AsyncClient, pieces: tuple[bytes, ...]
) -> None:
    answer = await _sent(client, *pieces, times=512)
    assert answer == b"" or b" 431 " in answer.partition(b"\r\n")[0] or b" 400 " in answer.partition(b"\r\n")[0]
    # and others are served
    assert "3" == (await client.put("/length", content=b"abc")).text


@pytest.mark.parametrize("begun", [b"", START, b"\r\n"])
async def test_a_head_that_does_not_come_ends_and_a_body_may_take_longer(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(bounded_http, "HEAD_S", 0.2)
    assert (await _sent(client, begun)).startswith(b"HTTP/1.1 408 ")
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    writer.write(START + b"content-length: 5\r\n\r\n")
    async with asyncio.timeout(20):
        for each in b"hello":
            await asyncio.sleep(0.15)
            writer.write(bytes([each]))
        assert b"HTTP/1.1 200 " in await reader.readline()
    writer.close()


LONG = START + b"content-length: 9\r\n"


@pytest.mark.parametrize(
    ("request_head", "behind"),
    [
        pytest.param(START + b"content-length: 0\r\n\r\n", b"\r\n", id="an empty line behind an answer"),
        pytest.param(LONG.replace(b"PUT /length", b"GET /nothing") + b"\r\n", b"a", id="a part of an answered body"),
    ],
)
async def test_what_stands_behind_an_answer_holds_no_connection(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, request_head: bytes, behind: bytes
) -> None:
    # given a connection that was answered and is kept
    monkeypatch.setattr(bounded_http, "HEAD_S", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    async with asyncio.timeout(20):
        writer.write(request_head)
        await reader.readuntil(b"\r\n\r\n")
        # when something comes that begins no other request, and nothing more
        writer.write(behind)
        # then it ends
        assert b"HTTP/1.1 408 " in await reader.read()
    writer.close()


async def test_ten_thousand_chunks_of_one_byte_are_one_body(client: httpx.AsyncClient) -> None:
    chunks = b"1\r\na\r\n" * 10_000 + b"0\r\n\r\n"
    answer = await _sent(client, START + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n", chunks)
    assert answer.endswith(b"\r\n\r\n10000")
