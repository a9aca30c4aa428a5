"""Whether an engine's processes do anything, seen from outside."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from weft_worker_agent.outbound.processes.load_progress import activity

SLEEPS = "import time; print('x', flush=True); time.sleep(600)"
COMPUTES = "print('x', flush=True)\nwhile True: pass"
CHILD = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {COMPUTES!r}]); time.sleep(600)"
READS = "print('x', flush=True); file = open('/dev/zero', 'rb')\nwhile True: file.read(1 << 20)"


@contextmanager
def running(program: str) -> Generator[int]:
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("program", [COMPUTES, CHILD, READS], ids=["computes", "a child computes", "reads"])
def test_a_process_that_works_is_seen_to(program: str) -> None:
    with running(program) as pid:
        before, until = activity(pid), time.monotonic() + 30
        assert before is not None
        works = False
        while not works and time.monotonic() < until:
            after = activity(pid)
            works = after is not None and after.works_since(before, 1.0)
        assert works


def test_a_process_that_waits_is_not_and_one_that_is_gone_tells_nothing() -> None:
    with running(SLEEPS) as pid:
        first, second = activity(pid), activity(pid)
        assert first is not None
        assert second is not None
        assert not second.works_since(first, 1.0)
    assert activity(pid) is None
