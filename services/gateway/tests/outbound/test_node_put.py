"""A body is given to a node at the node's pace and its sender's: silence and drips end it, and slowness doesn't."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from weft_gateway.domain.pace import Pace
from weft_gateway.outbound import node_http
from weft_gateway.outbound.node_http import NodeResponse, NodeUnreachable

LARGE = 64 << 20
"""More than sockets hold."""
HEAD = b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n"


@asynccontextmanager
async def node(*, piece: int = 1 << 20, pause_s: float = 0.0, answers: bool = True) -> AsyncGenerator[int]:
    """A node's port: it reads so much at a time and pauses then; 0: it reads nothing."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        left = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        while piece and left and (data := await reader.read(piece)):
            left -= len(data)
            await asyncio.sleep(pause_s)
        if answers and not left:
            writer.write(HEAD)
        await over.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        over.set()
        server.close()


async def pieces(length: int, *, of: int = 1 << 16, every_s: float = 0.0) -> AsyncGenerator[bytes]:
    for at in range(0, length, of):
        await asyncio.sleep(every_s)
        yield bytes(min(of, length - at))


async def put(
    port: int,
    length: int,
    body: AsyncGenerator[bytes] | None = None,
    *,
    silence_s: float = 30.0,
    pace: Pace | None = None,
    answer_s: float = 30.0,
) -> NodeResponse:
    given = body or pieces(length)
    paced = pace or Pace()
    return await node_http.put(
        "127.0.0.1", port, "/f", {}, given, length, silence_s=silence_s, pace=paced, answer_s=answer_s
    )


@pytest.mark.slow
async def test_a_body_may_take_longer_than_the_wait_for_its_answer() -> None:
    async with node() as port, await put(port, 20, pieces(20, of=1, every_s=0.15), answer_s=2.0) as answer:
        assert 200 == answer.status


async def test_a_node_that_has_all_and_says_nothing_is_left() -> None:
    async with node(answers=False) as port:
        with pytest.raises(NodeUnreachable, match=r"has all and did not answer within 0\.1 s"):
            await put(port, 20, answer_s=0.1)


async def test_a_node_that_takes_nothing_is_left() -> None:
    async with node(piece=0) as port:
        with pytest.raises(NodeUnreachable, match=r"took nothing for 0\.3 s"):
            await put(port, LARGE, silence_s=0.3)


async def test_a_node_that_drips_is_left_and_a_slow_one_is_not() -> None:
    async with node(piece=1 << 18, pause_s=0.01) as port:
        with pytest.raises(NodeUnreachable, match="took less than 1e"):
            await put(port, LARGE, pace=Pace(least=1e12, over_s=0.2))
        async with await put(port, LARGE // 4, pace=Pace(least=1000.0, over_s=0.1)) as answer:
            assert 200 == answer.status
