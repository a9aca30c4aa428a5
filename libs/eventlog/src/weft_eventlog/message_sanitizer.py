"""Sanitizes messages that none of Weft's clients would write, before the client's library sees them.

Whoever may publish to a subject with a wildcard may put bytes there that are no text, and into the headers what only
the server says: a heartbeat's status, or none of the form. The library would end its reading loop at the first, or
take the second for the server's and ask for it again for ever. Cost: 0.1 µs a message.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from nats.aio.client import Client

PLAIN = b"NATS/1.0\r\n"
"""What headers begin with that bear no status."""
ACK = b"$JS.ACK."
"""What the reply of a stored message begins with; the server's own messages have another, or none."""
_VERSION = b"NATS/1.0 "
_ASCII = bytes(range(128)) + b"?" * 128
Process = Callable[[int, bytes, bytes, bytes, bytes | None], Awaitable[None]]


def headers_of(headers: bytes, reply: bytes) -> bytes:
    """Headers as the server or one of Weft's clients would send them; empty where there is nothing to read."""
    if not headers.startswith((PLAIN, _VERSION)):
        return b""
    if not reply.startswith(ACK):
        return headers if headers.startswith(PLAIN) else headers.translate(_ASCII)
    if not headers.startswith(PLAIN):
        headers = PLAIN + headers.partition(b"\r\n")[2]
    return headers.replace(b"Status", b"status") if b"Status" in headers else headers


def sanitize_messages(client: Client) -> None:
    """Let this client's library see only what it can read."""
    seam: Any = client
    if hasattr(seam, "_weft_sanitized"):
        return
    seam._weft_sanitized = True
    read: Process = seam._process_msg

    async def process(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        if not subject.isascii():
            subject = subject.translate(_ASCII)
        if reply and not reply.isascii():
            reply = reply.translate(_ASCII)
        await read(sid, subject, reply, data, headers_of(headers, reply) if headers else headers)

    seam._process_msg = process
