"""Asking a process on this machine whether it is ready. Spoken over a bare socket: the launcher stays small."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_contracts import certificates
from weft_servers.port import LOOPBACK

_TIMEOUT_S = 2.0
_MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a process answers. `authority`: the file of the mesh's authority, where it answers over TLS."""

    host: str
    port: int
    authority: Path | None = None


async def problem(endpoint: Endpoint, path: str = "/readyz") -> str | None:
    """None if the process says 200; else why not, in a few words."""
    port = endpoint.port
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(endpoint.host, port, **_tls(endpoint))
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


def _tls(endpoint: Endpoint) -> dict[str, Any]:
    """What a connection over TLS needs: anyone of the mesh may answer, for its role says nothing of readiness."""
    if endpoint.authority is None:
        return {}
    import ssl  # only here: it would stay with the launcher of every mesh

    context = ssl.create_default_context(cafile=str(endpoint.authority))
    context.check_hostname = False
    return {"ssl": context, "server_hostname": certificates.server_name(certificates.GATEWAY)}
