"""Files go for want of room by a gateway's plain yes alone."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.identity import load_or_make

FILES = "0" * 16


@asynccontextmanager
async def answering(folder: Path, status: int, answer: object) -> AsyncGenerator[Gateway]:
    """A gateway that says this to whatever it is asked."""
    body = json.dumps(answer).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Gateway(f"http://127.0.0.1:{port}", load_or_make(folder))


@pytest.mark.parametrize("yes", [True, False])
async def test_a_gateway_that_knows_says_it(tmp_path: Path, *, yes: bool) -> None:
    async with answering(tmp_path, 200, {"may_go": yes}) as gateway:
        assert yes is await gateway.files_may_go(FILES)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, {"code": "node_not_found", "detail": "Node 'n-x' is not known here; register it."}),
        (404, {"code": "unknown_route", "detail": "There is no route /api/node/files/going; see /openapi.json."}),
        (404, "somebody else's page"),
        (405, {}),
    ],
)
async def test_who_does_not_know_the_node_or_the_question_gives_no_leave(
    tmp_path: Path, status: int, answer: object
) -> None:
    async with answering(tmp_path, status, answer) as gateway:
        with pytest.raises(Refused):
            await gateway.files_may_go(FILES)


@pytest.mark.parametrize("answer", [{}, [], {"may_go": 1}, "yes"])
async def test_an_answer_in_another_form_is_no_yes(tmp_path: Path, answer: object) -> None:
    async with answering(tmp_path, 200, answer) as gateway:
        with suppress(NotNow):
            assert not await gateway.files_may_go(FILES)
