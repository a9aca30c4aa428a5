"""Asking a service on loopback whether it is ready. Spoken over a bare socket: the launcher stays small."""

import asyncio
import contextlib

from weft_servers.port import LOOPBACK

_TIMEOUT_S = 2.0
_MAX_BYTES = 4096


async def problem(port: int, path: str = "/readyz", *, host: str = LOOPBACK) -> str | None:
    """None if the service says 200; else why not, in a few words."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nConnection: close\r\n\r\n".encode())
                answer = b""
                while len(answer) < _MAX_BYTES and (more := await reader.read(_MAX_BYTES)):
                    answer += more
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        return f"no answer on port {port} within {_TIMEOUT_S:g} s"
    except OSError:
        return f"nothing answers on port {port} yet"
    head, _, body = answer.partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] == [b"200"]:
        return None
    return body.decode(errors="replace").strip()[:300] or "it says that it is not ready"
