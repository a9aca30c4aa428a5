"""A service as its users run it: a process with settings in its environment, credentials and an HTTP port."""

import asyncio
import http.client
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from weft_contracts.catalogue import Writer
from weft_servers import port

from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

START_S = 60.0
"""A crowded machine takes long to import a service's modules."""


class ServiceProcess:
    """A started process; its standard error, where the log goes, is kept in a file."""

    def __init__(self, process: asyncio.subprocess.Process, http_port: int, log: Path) -> None:
        self.process = process
        self.http_port = http_port
        self._log = log

    async def get(self, path: str) -> tuple[int, str]:
        """Ask its HTTP server; status 0 while nothing answers."""
        return await asyncio.to_thread(_get, self.http_port, path)

    async def ready(self) -> None:
        """Return once it says that it is ready. Raises AssertionError with its log if it ends instead."""

        async def probe() -> bool:
            assert self.process.returncode is None, f"it ended with {self.process.returncode}: {self.text()}"
            return (await self.get("/readyz"))[0] == 200

        await until(probe, START_S)

    def text(self) -> str:
        """What it has written to standard error so far."""
        return self._log.read_text()

    def lines(self) -> list[dict[str, Any]]:
        """Its log, one dict a line. A line that is no JSON object fails here."""
        return [json.loads(line) for line in self.text().splitlines()]

    async def ended(self) -> int:
        """Wait for its end, bounded, and return its exit status."""
        return await asyncio.wait_for(self.process.wait(), START_S)

    async def terminate(self) -> int:
        """Ask it to stop and return its exit status."""
        self.process.terminate()
        return await self.ended()

    async def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


@asynccontextmanager
async def running(
    argv: Sequence[str], folder: Path, settings: Mapping[str, str], *, pass_fds: Sequence[int] = ()
) -> AsyncGenerator[ServiceProcess]:
    """A process of this Python with these settings (`WEFT_…`), killed at the end if it still runs."""
    with port.taken() as (http_port,):
        settings = {"WEFT_HTTP_PORT": str(http_port), "WEFT_LOG_FORMAT": "json", **settings}
        log = folder / f"service-{http_port}.log"
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *argv, env={**os.environ, **settings}, stderr=stderr, pass_fds=pass_fds
            )
        service = ServiceProcess(process, http_port, log)
        try:
            yield service
        finally:
            await service.kill()


def mesh_settings(mesh: MeshServer, service: Writer) -> dict[str, str]:
    """What tells a service where the mesh's log is and who it is there."""
    return {"WEFT_NATS_URL": mesh.url, "WEFT_NATS_CREDENTIALS": str(mesh.credentials_file(service))}


def _get(http_port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(port.LOOPBACK, http_port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()
