"""The agent's end of the supervisor's socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

_ANSWER_S = 10.0
_LIMIT = 16 << 20
"""Bytes of an answer: 256 hosts with their last words."""


class SupervisorGone(Exception):
    """The supervisor doesn't answer: it has ended, or it ends. The agent must too."""


class SupervisorRefused(Exception):
    """The supervisor can't do what was asked; the message is its sentence."""


@dataclass(frozen=True, slots=True)
class SupervisedHost:
    """What the supervisor says of one host."""

    host_id: str
    pid: int
    launch: dict[str, Any]
    status: dict[str, Any] | None
    exit_code: int | None
    stderr: tuple[str, ...]


class SupervisorClient:
    """Requests one at a time over one connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def hosts(self) -> list[SupervisedHost]:
        """Every host, living and ended. Raises SupervisorGone."""
        answer = await self._ask({"op": "list"})
        return [_kept(host) for host in answer["hosts"]]

    async def spawn(
        self, host_id: str, argv: list[str], env: dict[str, str], launch: dict[str, Any], secrets: str | None = None
    ) -> int:
        """Start a host; its process number. `secrets`: lines for its pipe; None: it has none.

        Raises SupervisorRefused, SupervisorGone.
        """
        request: dict[str, Any] = {"op": "spawn", "host_id": host_id, "argv": argv, "env": env, "launch": launch}
        if secrets is not None:
            request["secrets"] = secrets
        return int((await self._ask(request))["pid"])

    async def signal(self, host_id: str, name: str) -> None:
        """TERM or KILL a host's process group. Raises SupervisorRefused (no such host), SupervisorGone."""
        await self._ask({"op": "signal", "host_id": host_id, "signal": name})

    async def tell(self, host_id: str, secrets: str) -> None:
        """Write lines to a host's pipe for secrets. Raises SupervisorRefused (it has none), SupervisorGone."""
        await self._ask({"op": "tell", "host_id": host_id, "secrets": secrets})

    async def reap(self, host_id: str) -> None:
        """Forget an ended host. Raises SupervisorRefused (it lives, or is not there), SupervisorGone."""
        await self._ask({"op": "reap", "host_id": host_id})

    async def changes(self) -> AsyncIterator[None]:
        """One turn at the beginning, then one after each change of a host. Raises SupervisorGone at its end."""
        reader, writer = await self._connect()
        try:
            writer.write(b'{"op":"follow"}\n')
            while line := await reader.readline():
                del line
                yield
        except OSError:
            pass
        finally:
            writer.close()
        raise SupervisorGone("the supervisor closed its socket")

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await asyncio.open_unix_connection(str(self._path), limit=_LIMIT)
        except (OSError, TimeoutError) as error:
            raise SupervisorGone(f"the supervisor's socket {self._path} does not answer: {error}") from error

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        async with self._lock:
            if self._streams is None:
                self._streams = await self._connect()
            reader, writer = self._streams
            try:
                async with asyncio.timeout(_ANSWER_S):
                    writer.write(json.dumps(request).encode() + b"\n")
                    await writer.drain()
                    line = await reader.readline()
                if not line:
                    raise ConnectionResetError("closed")
                answer = cast("dict[str, Any]", json.loads(line))
            except (OSError, TimeoutError, ValueError) as error:
                self.close()
                raise SupervisorGone(f"the supervisor does not answer: {error!r}") from error
            except asyncio.CancelledError:
                self.close()  # its answer would be taken for the answer to the next request
                raise
        if not answer.get("ok"):
            raise SupervisorRefused(str(answer.get("error", "no reason given")))
        return answer


def _kept(host: dict[str, Any]) -> SupervisedHost:
    return SupervisedHost(
        host_id=host["host_id"],
        pid=host["pid"],
        launch=host["launch"],
        status=host["status"],
        exit_code=host["exit_code"],
        stderr=tuple(host["stderr"]),
    )
