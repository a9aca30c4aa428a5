"""An HTTP application on a real socket, and a client of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

import httpx


class HttpServer(Protocol):
    """What uvicorn's server has that is needed here."""

    started: bool
    should_exit: bool
    force_exit: bool
    servers: list[asyncio.Server]

    async def serve(self) -> None:
        """Serve until `should_exit`."""
        ...


@asynccontextmanager
async def served(server: HttpServer) -> AsyncGenerator[httpx.AsyncClient]:
    """Run a server that was configured for port 0 of loopback; gives a client with its address."""
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(30):
        while not server.started:
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as client:
        yield client
    server.should_exit = server.force_exit = True
    await serving
