"""An OpenAI server that says what a test wants, and no more: raw bytes on a socket."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Reply = Callable[["Connection"], Awaitable[None]]
DONE = b"data: [DONE]\n\n"


@dataclass
class Connection:
    """One request, and the way back."""

    writer: asyncio.StreamWriter
    line: str
    headers: dict[str, str]
    body: Any

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def stream(self, *chunks: dict[str, Any] | bytes) -> None:
        """A stream's head and these events."""
        await self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for chunk in chunks:
            await self.event(chunk)

    async def event(self, chunk: dict[str, Any] | bytes) -> None:
        await self.send(chunk if isinstance(chunk, bytes) else f"data: {json.dumps(chunk)}\n\n".encode())

    async def answer(self, body: object, status: int = 200, **headers: str) -> None:
        """A whole answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode() + data)

    async def gone(self) -> None:
        """Wait until the other end has closed."""
        async with asyncio.timeout(30):
            while not self.writer.is_closing():
                try:
                    self.writer.write(b": still here\n\n")
                    await self.writer.drain()
                except (ConnectionError, OSError):
                    return
                await asyncio.sleep(0.01)


def said(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a chat."""
    delta = {"content": text} if text is not None else {}
    return {"choices": [{"index": 0, "delta": delta | more, "finish_reason": finish}]}


def called(index: int, name: str | None, arguments: str) -> dict[str, Any]:
    """A chunk that adds to a call of a tool."""
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return said(None, tool_calls=[{"index": index, "id": "c", "type": "function", "function": function}])


@dataclass
class ScriptedServer:
    """Lists the model `m`, answers health's own request, and everything else by `reply`."""

    reply: Reply
    url: str = ""
    asked: list[Connection] = field(default_factory=list[Connection])
    models: object = field(default_factory=lambda: {"data": [{"id": "m", "owned_by": "script"}]})
    well: bool = True
    """Whether health's own request is answered as it should be."""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (found := await _request(reader, writer)) is not None:
                await self._answer(found)
                if writer.is_closing():
                    break
                if "close" in str(found.headers) or (found.body is not None and found.body.get("stream")):
                    break
        except (ConnectionError, OSError):
            pass
        finally:
            writer.close()

    async def _answer(self, found: Connection) -> None:
        if found.line.startswith("GET /v1/models "):
            await found.answer(self.models)
        elif isinstance(found.body, dict) and found.body.get("max_tokens") == 1 and not found.body.get("stream"):
            if self.well:
                await found.answer({"choices": [{"message": {"content": "Hi"}, "finish_reason": "length"}]})
            else:
                await found.answer({"error": {"message": "CUDA out of memory"}}, 500)
        else:
            self.asked.append(found)
            await self.reply(found)


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Connection | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    size = int(headers.get("content-length", "0"))
    body = json.loads(await reader.readexactly(size)) if size else None
    return Connection(writer, line, headers, body)


@asynccontextmanager
async def scripted(reply: Reply, tls: ssl.SSLContext | None = None) -> AsyncGenerator[ScriptedServer]:
    """A server on a port of its own; over TLS it is called localhost."""
    script = ScriptedServer(reply)
    server = await asyncio.start_server(script.take, "127.0.0.1", 0, ssl=tls)
    where = "http://127.0.0.1" if tls is None else "https://localhost"
    script.url = f"{where}:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield script
