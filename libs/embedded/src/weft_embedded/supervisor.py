"""One part of the mesh, kept running: started, watched, started again, ended in order."""

import asyncio
import contextlib
import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weft_embedded.run_file import PartRow
from weft_embedded.service_process import Process

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
STEADY_S = 30.0
"""A part that ran for so long starts again with the shortest pause."""
HOPELESS_ENDS = 4
_READY_LOOK_S = 0.1
_HELD_LOOK_S = 0.5

PartState = Literal["starting", "ready", "restarting", "held", "stopped"]
Report = Callable[["SupervisedPart", str], None]


@dataclass(frozen=True, slots=True)
class Part:
    """What there is to keep running."""

    name: str
    start: Callable[[], Awaitable[Process]]
    """Starts it. An error counts as an end of the process."""
    problem: Callable[[], Awaitable[str | None]]
    """None when it is ready, else why not."""
    log: Path
    port: int | None = None
    grace_s: float = 15.0
    """From its stop signal to its end by force."""
    held: Callable[[], bool] = lambda: False
    """Whether an operator wants it not to be started again when it has ended."""


class SupervisedPart:
    """A part under supervision. `run` keeps it going until `stop`."""

    def __init__(self, part: Part, report: Report) -> None:
        self.part = part
        self.state: PartState = "starting"
        self.restarts = 0
        self.problem: str | None = "it has not been started"
        self.ready = asyncio.Event()
        """Set once it was ready for the first time."""
        self.hopeless = asyncio.Event()
        """Set when it ended several times and was never ready. It is started again all the same."""
        self._report = report
        self._process: Process | None = None
        self._starting: asyncio.Future[Process] | None = None
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._anew = asyncio.Event()
        """It is to be started again at once. What starts after that is new."""
        self._begun = False

    @property
    def name(self) -> str:
        return self.part.name

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def row(self) -> PartRow:
        """What the run file says of it."""
        part = self.part
        return PartRow(part.name, self.state, self.pid, self.restarts, part.port, str(part.log))

    async def run(self) -> None:
        """Start it, and start it again whenever it ends, for ever and with growing pauses; until `stop`."""
        pause = FIRST_PAUSE_S
        self._begun = True
        try:
            while not self._stopping.is_set():
                began = time.monotonic()
                self._anew.clear()
                ended = await self._once()
                if self._stopping.is_set():
                    return
                if time.monotonic() - began >= STEADY_S:
                    pause = FIRST_PAUSE_S
                self.restarts += 1
                self.problem = ended
                if self._anew.is_set():
                    self._change("restarting", "started anew")
                else:
                    if self.restarts >= HOPELESS_ENDS and not self.ready.is_set():
                        self.hopeless.set()
                    self._change("restarting", f"{ended.splitlines()[0]}; starting it again in {pause:.1f} s")
                    await self._sleep(pause * random.uniform(0.8, 1.2), self._stopping, self._anew)
                await self._while_held()
                pause = FIRST_PAUSE_S if self._anew.is_set() else min(LONGEST_PAUSE_S, pause * 2)
        finally:
            self._change("stopped", "")
            self._ended.set()

    async def renew(self) -> None:
        """End the process in order and start it again, at once: also where it waits for its next start."""
        if self._anew.is_set():
            return  # it is being ended
        self._anew.set()
        if self._process is not None:
            await self._process.stop(self.part.grace_s)

    def signal(self, number: int) -> None:
        """Send the process a signal, if there is one."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End the process by force, at once and without waiting for that."""
        if self._process is not None:
            self._process.kill()

    async def stop(self, grace_s: float | None = None) -> None:
        """End the part and its supervision; it takes little more than the grace time. A start is given up."""
        self._stopping.set()
        if self._starting is not None:
            self._starting.cancel()
        if self._process is not None:
            await self._process.stop(self.part.grace_s if grace_s is None else grace_s)
        if self._begun:
            await self._ended.wait()

    async def _once(self) -> str:
        """One life of the process; how it ended, as a sentence."""
        self._starting = asyncio.ensure_future(self.part.start())
        try:
            process = await self._starting
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            return f"the start of {self.name} was given up"
        except Exception as e:  # whatever kept it from starting may be gone at the next try
            return f"{self.name} could not be started: {e}"
        finally:
            self._starting = None
        self._process = process
        if self._stopping.is_set() or self._anew.is_set():  # asked for while it started, which saw no process
            await process.stop(self.part.grace_s)
        watch = asyncio.create_task(self._watch_readiness(), name=f"readiness of {self.name}")
        try:
            status = await process.wait()
        finally:
            watch.cancel()
            self._process = None
        return f"{self.name} (process {process.pid}) ended with {_status(status)}"

    async def _watch_readiness(self) -> None:
        while (problem := await self.part.problem()) is not None:
            self.problem = problem
            await asyncio.sleep(_READY_LOOK_S)
        self.problem = None
        self._change("ready", "ready again" if self.ready.is_set() else "ready")
        self.ready.set()

    async def _while_held(self) -> None:
        if self.part.held():
            self._change("held", f"held: it is not started again until `weft release {self.name}`")
        while self.part.held() and not self._stopping.is_set():
            await self._sleep(_HELD_LOOK_S, self._stopping)

    async def _sleep(self, seconds: float, *until: asyncio.Event) -> None:
        """Sleep, or until one of these is set."""
        waits = [asyncio.create_task(event.wait()) for event in until]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()

    def _change(self, state: PartState, what: str) -> None:
        self.state = state
        self._report(self, what)


def _status(status: int) -> str:
    return f"signal {status - 128}" if status > 128 else f"status {status}"
