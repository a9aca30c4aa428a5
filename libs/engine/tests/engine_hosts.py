"""Engine hosts as real processes: started with a launch, read, and ended whatever they do."""

import asyncio
import json
import os
import select
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from weft_dataplane import SessionClient, make_hello

START_S = 60.0
VLLM_STARTS_S = 600.0
"""Three processes that import torch, one after another, on a machine that others use."""


def launch_fields(**changes: object) -> dict[str, object]:
    """A launch of a simulated engine, with changes."""
    return {
        "replica": "m-1",
        "incarnation": "i-1",
        "node": "n-1",
        "revision_digest": "d-1",
        "engine": "simulated",
        "context_tokens": 512,
        "concurrency": 4,
        "correlation_id": "c-1",
        **changes,
    }


def write_launch(folder: Path, fields: dict[str, object]) -> Path:
    """A launch file of its own name."""
    file = folder / f"launch-{len(list(folder.iterdir()))}.json"
    file.write_text(json.dumps(fields))
    return file


class HostProcess:
    """An engine host that was started."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self.process = process
        self.lifeline = lifeline
        self.phases: list[dict[str, Any]] = []
        self.port = 0

    async def phase(self, name: str, within_s: float = START_S) -> dict[str, Any]:
        """Read phases until this one."""
        assert self.process.stdout is not None
        async with asyncio.timeout(within_s):
            while line := await self.process.stdout.readline():
                said = json.loads(line)
                self.phases.append(said)
                self.port = said.get("port", self.port)
                if said["phase"] == name:
                    return said
        raise AssertionError(f"the host ended without {name}: {self.phases}")

    async def open(self, gateway: str = "g") -> SessionClient:
        """A session with this host."""
        return await SessionClient.open(f"127.0.0.1:{self.port}", make_hello("m-1", "i-1", "d-1", gateway), timeout=30)

    async def exit_code(self) -> int:
        """Wait for the end."""
        return await asyncio.wait_for(self.process.wait(), START_S)

    def close_lifeline(self) -> None:
        """What the supervisor's end does."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1


@asynccontextmanager
async def started(tmp_path: Path, python: str, **changes: object) -> AsyncGenerator[HostProcess, None]:
    """A host process with its supervisor's pipe; it is ended with the context."""
    launch = write_launch(tmp_path, launch_fields(**changes))
    reading, writing = os.pipe()
    command = ["-m", "weft_engine", "--launch", str(launch), "--lifeline", str(reading)]
    with launch.with_suffix(".err").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            python,
            *command,
            pass_fds=(reading,),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    os.close(reading)
    host = HostProcess(process, writing)
    try:
        yield host
    finally:
        host.close_lifeline()
        if process.returncode is None:
            process.kill()
            await process.wait()


class VllmHost:
    """A host with vLLM that several tests share, each over a session of its own. Started without an event loop."""

    def __init__(self, python: str, folder: Path, **changes: object) -> None:
        unwatched = {"engine": "vllm", "without_agent_s": 3600, "log_level": "warning"}
        launch = write_launch(folder, launch_fields(**unwatched, **changes))
        reading, self._lifeline = os.pipe()
        command = [python, "-m", "weft_engine", "--launch", str(launch), "--lifeline", str(reading)]
        self.log = launch.with_suffix(".err")
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(command, pass_fds=(reading,), stdout=subprocess.PIPE, stderr=errors)
        os.close(reading)
        self.said: list[dict[str, Any]] = []
        self.ready = self.wait_for("ready")

    def wait_for(self, phase: str) -> dict[str, Any]:
        """Read what the host says until this phase."""
        until = time.monotonic() + VLLM_STARTS_S
        assert self.process.stdout is not None
        while select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            line = self.process.stdout.readline()
            if not line:
                break
            self.said.append(json.loads(line))
            if self.said[-1]["phase"] == phase:
                return self.said[-1]
        raise AssertionError(f"no {phase}: {self.said}; {self.log.read_text(errors='replace')[-3000:]}")

    async def open(self, gateway: str = "g") -> SessionClient:
        """A session with this host."""
        address = f"127.0.0.1:{self.ready['port']}"
        return await SessionClient.open(address, make_hello("m-1", "i-1", "d-1", gateway), timeout=30)

    def processes(self) -> list[psutil.Process]:
        """vLLM's own, under the host."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self) -> None:
        """Kill it, however it is; its processes must end with it."""
        below = self.processes() if self.process.poll() is None else []
        self.process.kill()
        self.process.wait(30)
        os.close(self._lifeline)
        assert self.process.stdout is not None
        said = self.process.stdout.read()
        self.process.stdout.close()
        assert [] == psutil.wait_procs(below, timeout=30)[1], "vLLM's processes outlived their host"
        for line in said.splitlines():
            assert "phase" in json.loads(line), "something else wrote to the host's stdout"
