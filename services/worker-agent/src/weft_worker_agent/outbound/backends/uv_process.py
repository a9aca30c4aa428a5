"""One run of uv: tied to this process, its lines heard as they come, ended where nothing moves for too long."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

LINES_KEPT = 40
LINES_OF_BUILD = 2000
"""A compiler's first error may be followed by many lines."""
LONGEST_BUILD_S = 4 * 3600.0
_MOST_LINE = 64 * 1024
_LOOK_S = 0.5
_TETHER = str(Path(__file__).with_name("tether.py"))


class Silent(Exception):
    """Nothing moved for too long; the process was ended."""


async def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    hear: Callable[[str], None],
    silence_s: float,
    held: int,
    builds: bool = False,
) -> tuple[int, list[str]]:
    """Its status and last lines. `held`: a descriptor that it keeps open for as long as it lives.

    `builds`: compilers work below it for long without a word: they move as long as they compute, 4 hours at most.
    Cancelled, it ends the process and all that it started. Raises Silent, OSError.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", _TETHER, str(os.getpid()), *argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(environment),
        start_new_session=True,
        pass_fds=(held,),
        limit=_MOST_LINE,
    )
    lines: deque[str] = deque(maxlen=LINES_OF_BUILD if builds else LINES_KEPT)
    moved = _Moved(process.pid, builds=builds)
    began = time.monotonic()

    async def listen() -> None:
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than any line that it writes
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            lines.append(text)
            moved.now()
            hear(text)

    listening = asyncio.create_task(listen())
    ended = asyncio.create_task(process.wait())
    try:
        while not ended.done():
            await asyncio.wait((ended,), timeout=min(_LOOK_S, silence_s / 2))
            if not ended.done() and moved.still_s() > silence_s:
                raise Silent
            if builds and time.monotonic() - began > LONGEST_BUILD_S:
                raise Silent
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await listening
        return process.returncode if process.returncode is not None else -1, list(lines)
    finally:
        listening.cancel()
        if process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5.0):
                    await asyncio.shield(ended)
        ended.cancel()


class _Moved:
    """When a process was last seen to say or to write something."""

    def __init__(self, pid: int, *, builds: bool) -> None:
        self._pid = pid
        self._builds = builds
        self._written = 0
        self._at = time.monotonic()

    def now(self) -> None:
        self._at = time.monotonic()

    def still_s(self) -> float:
        written = self._look()
        if written != self._written:
            self._written = written
            self.now()
        return time.monotonic() - self._at

    def _look(self) -> int:
        try:
            process = psutil.Process(self._pid)
            counters = process.io_counters() if hasattr(process, "io_counters") else None
            written = int(getattr(counters, "write_chars", 0)) if counters is not None else 0
            return written + (_computed(process) if self._builds else 0)
        except psutil.Error:
            return self._written


def _computed(process: psutil.Process) -> int:
    """Tenths of a second that what runs below a process has computed; it moves as well when one of them ends."""
    found = 0.0
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = child.cpu_times()
            found += times.user + times.system
    return int(found * 10)
