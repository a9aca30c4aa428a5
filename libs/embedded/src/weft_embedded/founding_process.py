"""The founding step as the launcher sees it: a process that it starts, asks and waits for."""

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from weft_client.failure import Failure
from weft_identity.operator_mode import OperatorMode

from weft_embedded.logs import open_for_append, tail
from weft_embedded.state import State

_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Keys:
    """What the founding step tells the launcher."""

    operator: OperatorMode
    authority: str | None
    """The digest of the authority's certificate; None where the mesh speaks plainly."""
    workers: tuple[str, ...] = ()
    """The public keys of the launcher's own workers."""


class FoundingProcess:
    """The founding step, begun. Use as an asynchronous context manager."""

    def __init__(
        self, state: State, names: tuple[str, ...] | None, *, workers: int, external_nats: bool = False
    ) -> None:
        """`names`: under which people reach the gateway; None: the mesh speaks plainly. `workers`: how many run
        here. `external_nats`: the NATS server is an operator's, and is told the mesh's accounts.
        """
        self._state = state
        self._external_nats = external_nats
        self._workers = workers
        self._names = names
        self._log = state.log("founding")
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "FoundingProcess":
        log = open_for_append(self._log)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "weft_embedded.founding",
                str(self._state.folder),
                json.dumps(self._names),
                json.dumps(self._external_nats),
                str(self._workers),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def keys(self) -> "Keys":
        """What NATS is told of the mesh's accounts, and the authority; credentials lie in the state by then."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._bounded(self._process.stdout.readline())
        if not line:
            raise Failure(f"the mesh's keys could not be made or read{tail(self._log)}")
        found = json.loads(line)
        return Keys(OperatorMode(**found["operator"]), found["authority"], tuple(found["workers"]))

    async def declare(self, url: str) -> None:
        """Make the server at `url` hold the streams, buckets and stores."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(url.encode() + b"\n")
        self._process.stdin.close()
        if await self._bounded(self._process.wait()):
            raise Failure(f"the server's streams could not be declared{tail(self._log)}")

    async def _bounded(self, work: Any) -> Any:
        try:
            return await asyncio.wait_for(work, _TIMEOUT_S)
        except TimeoutError:
            raise Failure(f"the founding step took longer than {_TIMEOUT_S:g} s{tail(self._log)}") from None
