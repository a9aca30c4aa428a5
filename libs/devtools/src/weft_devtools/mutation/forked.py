"""A task in a forked child, whose time, CPU and memory are bounded. It imports nothing of Weft's: see trials.py."""

import os
import resource
import signal
import sys
import time
from contextlib import suppress
from typing import Any

MEMORY_BYTES = 4 << 30
_PARENT = os.getppid()


def run_forked(task: Any, bound_s: float, cpu_s: float | None) -> tuple[int | None, str]:
    """Fork, run `task(write)`; its exit status, None where it was ended, and what it wrote."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        status = 70
        try:
            os.close(reading)
            if cpu_s is not None:
                seconds = int(cpu_s) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
            with os.fdopen(writing, "w") as out:
                status = task(out)
        except BaseException as e:
            print(f"the trial broke: {type(e).__name__}: {e}", flush=True)
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(writing)
    said: list[bytes] = []
    deadline = time.monotonic() + bound_s
    os.set_blocking(reading, False)
    try:
        while True:
            with suppress(BlockingIOError):
                while part := os.read(reading, 1 << 16):
                    said.append(part)
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline or os.getppid() != _PARENT:
                os.kill(process, signal.SIGKILL)
            time.sleep(0.005)
        with suppress(BlockingIOError):
            while part := os.read(reading, 1 << 16):
                said.append(part)
    finally:
        os.close(reading)
    return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else None), b"".join(said).decode()
