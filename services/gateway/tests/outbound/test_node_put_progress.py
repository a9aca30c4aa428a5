"""A node that takes a body slowly is seen to take it: what buffers hold on the way is little."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from weft_contracts import certificates
from weft_gateway.domain.pace import Pace
from weft_gateway.outbound import node_http
from weft_identity import authority

LENGTH, PIECE = 64 << 20, 1 << 16
STEP = 640 << 10
"""Bytes; more is never taken without being seen."""


def read(connection: socket.socket, length: int) -> None:
    while length:
        data = connection.recv(min(length, PIECE))
        assert data
        length -= len(data)


@pytest.mark.parametrize("secure", [True, False])
async def test_what_a_slow_node_takes_is_seen_soon(tmp_path: Path, *, secure: bool) -> None:
    mesh = authority.load_or_make(tmp_path)
    mesh.lay_out(tmp_path / "node", certificates.GATEWAY, ["127.0.0.1"])
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(tmp_path / "node" / certificates.CERTIFICATE, tmp_path / "node" / certificates.KEY)
    secured: dict[str, Any] = {"ssl": ssl.create_default_context(cadata=mesh.pem)}
    given = 0

    async def pieces() -> AsyncGenerator[bytes]:
        nonlocal given
        for _ in range(LENGTH // PIECE):
            given += PIECE
            yield bytes(PIECE)

    def taken(listener: socket.socket) -> socket.socket:
        connection = listener.accept()[0]
        connection.settimeout(30)
        return own.wrap_socket(connection, server_side=True) if secure else connection

    async def stands() -> int:
        """Bytes that were asked for when no more are."""
        async with asyncio.timeout(30):
            before = -1
            while before < given:
                before = given
                await asyncio.sleep(0.2)
        return given

    # given a node that has taken nothing of a body, so that no more is asked for
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        put = asyncio.create_task(
            node_http.put(
                "127.0.0.1",
                port,
                "/f",
                {},
                pieces(),
                LENGTH,
                secured if secure else None,
                silence_s=60.0,
                pace=Pace(),
                answer_s=60.0,
            )
        )
        with await asyncio.to_thread(taken, listener) as connection:
            for _ in range(2):
                before = await stands()
                # when it takes a little
                await asyncio.to_thread(read, connection, STEP)
                # then more is asked for
                async with asyncio.timeout(10):
                    while given == before:
                        await asyncio.sleep(0.01)
            put.cancel()
            with pytest.raises(asyncio.CancelledError):
                await put
