"""An engine host in a process of its own, and a session with it. Not a script."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from weft_dataplane import SessionClient, make_hello

REPLICA = {"replica": "m-1", "incarnation": "i-1", "node": "n-1", "revision_digest": "d-1"}


@asynccontextmanager
async def hosted(
    launch: Mapping[str, object], python: str = sys.executable
) -> AsyncGenerator[tuple[int, SessionClient]]:
    """Start a host by its orders, whose replica is told here; its pid and a session with it, once it is ready.

    `python`: an interpreter that has the engine and this tree's host. Raises AssertionError where it doesn't start.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({**REPLICA, "log_level": "error", **launch}, file)
        file.flush()
        host = await asyncio.create_subprocess_exec(
            python, "-m", "weft_engine", "--launch", file.name, stdout=asyncio.subprocess.PIPE
        )
        try:
            port = await _ready(host)
            hello = make_hello(REPLICA["replica"], REPLICA["incarnation"], REPLICA["revision_digest"], "bench")
            client = await SessionClient.open(f"127.0.0.1:{port}", hello)
            try:
                yield host.pid, client
            finally:
                await client.close()
        finally:
            if host.returncode is None:
                host.terminate()
            await host.wait()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far; its resolution is a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _ready(host: asyncio.subprocess.Process) -> int:
    """The port of its sessions."""
    assert host.stdout is not None
    port = 0
    while line := await host.stdout.readline():
        said = json.loads(line)
        port = said.get("port", port)
        assert said["phase"] != "failed", said
        if said["phase"] == "ready":
            return port
    raise AssertionError(f"the host ended before it was ready, with {await host.wait()}")
