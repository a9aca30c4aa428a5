"""One connection to an OpenAI-compatible server: streamed answers one after the other, each piece's time noted.

On asyncio's protocols and httptools, so that the client costs little beside what it measures.
"""

import asyncio
import json
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
from weft_client.failure import Exit, Failure
from weft_contracts import certificates

from weft_cli.bench.figures import Sample

_CONNECT_S = 10.0
_MAX_ERROR = 64 * 1024
_MAX_EVENT = 16 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is."""

    host: str
    port: int
    tls: bool
    path: str
    """Of chat completions."""
    key: str | None = None
    mesh: Path | None = None
    """The file of the mesh's own authority, by which the server must be a gateway; None: as this machine trusts."""

    @staticmethod
    def of(url: str, key: str | None = None, mesh: Path | None = None) -> "Place":
        """From a base URL: that of the server, or that of its API, which ends in `/v1` or the like. Raises Failure."""
        parts = urlsplit(url if "//" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise Failure(f"--url {url} is no server's address; one looks like http://127.0.0.1:8080/v1", Exit.USAGE)
        tls = parts.scheme == "https"
        base = parts.path.rstrip("/") or "/v1"
        return Place(parts.hostname, port or (443 if tls else 80), tls, f"{base}/chat/completions", key, mesh)

    @property
    def authority(self) -> str:
        """The `Host` of a request."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.tls else 80) else f"{name}:{self.port}"


class HttpStream(asyncio.Protocol):
    """Asks one question at a time; connects when it must."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._transport: asyncio.WriteTransport | None = None
        self._parser: Any = None
        self._reset()

    async def ask(self, body: bytes, within_s: float) -> Sample:
        """One streamed answer. Never raises for what the server does: that is the sample's error.

        A request that is cut off by `within_s` is a sample without an error and not whole.
        """
        self._reset()
        self._done = asyncio.get_running_loop().create_future()
        self._sent = time.perf_counter()
        try:
            async with asyncio.timeout(within_s):
                if self._transport is None or self._transport.is_closing():
                    await self._connect()
                    self._sent = time.perf_counter()
                assert self._transport is not None
                self._transport.write(self._request(body))
                await self._done
        except TimeoutError:
            self.close()
            return self._sample(None, whole=False)
        except OSError as e:
            self.close()
            return self._sample(f"no connection: {e.strerror or e}", whole=False)
        return self._outcome()

    def close(self) -> None:
        """Let the connection go."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as e:
            self._fail(f"the answer is not HTTP: {e}")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return  # closed from here, and a new one may be under way
        self._transport = None
        if not self._ended:
            self._fail("the server ended the connection")
        elif self._done is not None and not self._done.done():
            self._done.set_result(None)  # a body without a length ends like this

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._rest += body
        if self._status != 200:
            del self._rest[_MAX_ERROR:]
            return
        if b"\n\n" not in self._rest and b"\r\n\r\n" not in self._rest:
            if len(self._rest) > _MAX_EVENT:
                self._fail("an event without an end")
                self.close()
            return
        now = time.perf_counter()
        *events, rest = bytes(self._rest).replace(b"\r\n", b"\n").split(b"\n\n")
        self._rest = bytearray(rest)
        for event in events:
            self._event(event, now)

    def on_message_complete(self) -> None:
        if not self._parser.should_keep_alive():
            self.close()
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        place = self._place
        context = ssl.create_default_context(cafile=place.mesh) if place.tls else None
        name = certificates.server_name(certificates.GATEWAY) if place.tls and place.mesh is not None else None
        connecting = loop.create_connection(lambda: self, place.host, place.port, ssl=context, server_hostname=name)
        await asyncio.wait_for(connecting, _CONNECT_S)

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._done: asyncio.Future[None] | None = None
        self._rest = bytearray()
        self._status = 0
        self._sent = 0.0
        self._first: float | None = None
        self._last: float | None = None
        self._pieces = 0
        self._tokens: int | None = None
        self._error: str | None = None
        self._ended = False

    def _request(self, body: bytes) -> bytes:
        key = f"Authorization: Bearer {self._place.key}\r\n" if self._place.key else ""
        head = (
            f"POST {self._place.path} HTTP/1.1\r\nHost: {self._place.authority}\r\nContent-Type: application/json\r\n"
            f"Accept: text/event-stream\r\n{key}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def _event(self, event: bytes, now: float) -> None:
        data = b"\n".join(line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
        if not data:
            return
        if data == b"[DONE]":
            self._ended = True
            return
        try:
            chunk: Any = json.loads(data)
        except ValueError:
            self._error = self._error or "a piece of the answer is no JSON"
            return
        if "error" in chunk:
            self._error = self._error or sentence(chunk, "the answer broke off")
        if usage := chunk.get("usage"):
            self._tokens = usage.get("completion_tokens")
        for choice in chunk.get("choices") or ():
            delta: dict[str, Any] = choice.get("delta") or {}
            if delta.get("content") or delta.get("reasoning_content") or delta.get("tool_calls"):
                self._pieces += 1
                self._first = self._first or now
                self._last = now

    def _fail(self, why: str) -> None:
        if self._done is not None and not self._done.done():
            self._error = self._error or why
            self._done.set_result(None)

    def _outcome(self) -> Sample:
        error = self._error
        if error is None and self._status != 200:
            try:
                error = sentence(json.loads(bytes(self._rest)), f"status {self._status}")
            except ValueError:
                error = f"status {self._status}"
            error = f"{self._status}: {error}" if not error.startswith("status") else error
        elif error is None and not self._ended:
            error = "the answer ended without [DONE]"
        return self._sample(error, whole=error is None)

    def _sample(self, error: str | None, *, whole: bool) -> Sample:
        return Sample(self._sent, self._first, self._last, self._pieces, self._tokens, error, whole)


def sentence(parsed: Any, otherwise: str) -> str:
    """The reason in an error's body, whichever of the usual forms it has."""
    found: Any = parsed
    if isinstance(found, dict):
        inner: Any = cast("dict[str, Any]", found).get("error", found)
        if isinstance(inner, str):
            return inner
        if isinstance(inner, dict):
            for name in ("message", "detail"):
                text: Any = cast("dict[str, Any]", inner).get(name)
                if isinstance(text, str) and text:
                    return text
    return otherwise
