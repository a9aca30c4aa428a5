"""A worker's file server as a test wants it: what it answers, byte for byte, and how often it was asked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Answer:
    """One answer. Without a length the body ends with the connection."""

    body: bytes = b""
    status: int = 200
    length: bool = True
    headers: dict[str, str] = field(default_factory=dict[str, str])
    stall: asyncio.Event | None = None
    """Set: half of the body is sent, and the rest when the event is set."""

    def head(self) -> bytes:
        headers = {"connection": "close"} | self.headers
        if self.length:
            headers["content-length"] = str(len(self.body))
        lines = [f"HTTP/1.1 {self.status} X", *(f"{key}: {value}" for key, value in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"


class FilesServer:
    """Answers by path; 404 for what it doesn't have. `cut` answers end in the middle of the body."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.first: dict[str, Answer] = {}
        """What a path answers the first time only."""
        self.asked: list[str] = []
        self.asked_once = asyncio.Event()
        self.hung_up = asyncio.Event()
        """Set when a client left before its answer was whole."""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = request.split(" ")[1]
            self.asked.append(path)
            self.asked_once.set()
            answer = self.first.pop(path, None) or self.answers.get(path, Answer(status=404))
            writer.write(answer.head())
            if answer.stall is None:
                writer.write(answer.body)
            else:
                writer.write(answer.body[: len(answer.body) // 2])
                await writer.drain()
                if await self._left(reader, answer.stall):
                    self.hung_up.set()
                    return
                writer.write(answer.body[len(answer.body) // 2 :])
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            writer.close()

    async def _left(self, reader: asyncio.StreamReader, stall: asyncio.Event) -> bool:
        left, done = asyncio.ensure_future(reader.read(1)), asyncio.ensure_future(stall.wait())
        await asyncio.wait((left, done), timeout=30, return_when=asyncio.FIRST_COMPLETED)
        done.cancel()
        return left.cancel() is False


@asynccontextmanager
async def files_server() -> AsyncGenerator[FilesServer]:
    """A file server on a free port of loopback."""
    files = FilesServer()
    server = await asyncio.start_server(files.serve, "127.0.0.1", 0)
    files.port = server.sockets[0].getsockname()[1]
    async with server:
        yield files
