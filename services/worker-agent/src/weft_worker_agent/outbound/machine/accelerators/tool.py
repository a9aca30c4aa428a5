"""Asks a vendor's tool: a process with little environment, bounded in time and size, given up if it hangs."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping

from weft_worker_agent.outbound.supervisor.environment import TOOLS, chosen

_MORE_FOLDERS = ("/opt/rocm/bin", "/usr/sbin", "/usr/local/bin")
TIMEOUT_S = 10.0
"""A tool that takes longer hangs: the slowest, written in Python, takes two seconds on a loaded machine."""
_GIVEN_UP_S = 1.0
MOST_BYTES = 4 << 20


class NoAnswer(Exception):
    """A tool or driver does not answer, or with nothing that can be read; the message is a sentence for people."""


def path_of(name: str) -> str | None:
    """Where a tool is; None if it isn't installed."""
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_FOLDERS))
    return shutil.which(name, path=folders)


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a tool inherits; it speaks English."""
    return chosen(TOOLS, environ) | {"LC_ALL": "C"}


async def ask(path: str, *arguments: str, timeout: float = TIMEOUT_S) -> str:
    """What the tool writes to its standard output. Raises NoAnswer."""
    name = os.path.basename(path)
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise NoAnswer(f"{name} can't be started: {error.strerror or error}") from None
    try:
        async with asyncio.timeout(timeout):
            assert process.stdout is not None
            output = await process.stdout.read(MOST_BYTES)
            while len(output) < MOST_BYTES and (more := await process.stdout.read(MOST_BYTES - len(output))):
                output += more
            status = await process.wait() if len(output) < MOST_BYTES else -1
    except TimeoutError:
        raise NoAnswer(f"{name} did not answer within {timeout:g} s: its driver may hang") from None
    finally:
        await end(process)
    if status != 0:
        raise NoAnswer(f"{name} {' '.join(arguments)} ended with status {status}")
    return output.decode(errors="replace")


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a process and all that it started; one that can't even be killed is left behind."""
    if process.returncode is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GIVEN_UP_S):
            while process.stdout is not None and await process.stdout.read(1 << 16):
                pass  # what is still in the pipe keeps it open
            await process.wait()
