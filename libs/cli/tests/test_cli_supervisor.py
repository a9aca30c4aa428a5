"""A part under supervision, with stand-ins for services."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from weft_cli.embedded import processes, supervisor
from weft_cli.embedded.processes import Command, Running
from weft_cli.embedded.supervisor import Part, Supervised

STEADY = "import os,sys; os.read(int(os.environ['WEFT_LIFELINE_FD']), 1)"
"""A service that ends when its lifeline closes."""
DEAF = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
BROKEN = "import sys; sys.exit('no such setting')"

Keep = Callable[[str], Awaitable[tuple[Supervised, list[str]]]]


@pytest_asyncio.fixture
async def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Keep]:
    """Puts a stand-in's program under supervision; ends it with the test."""
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.02)
    kept: list[tuple[Supervised, asyncio.Task[None]]] = []

    async def keep(program: str) -> tuple[Supervised, list[str]]:
        log = tmp_path / "stand-in.log"
        command = Command((sys.executable, "-S", "-c", program), processes.environment(), log)

        async def start() -> Running:
            return await processes.start(command)

        async def problem() -> str | None:
            said = await asyncio.to_thread(log.read_text)
            return None if program == STEADY or "deaf" in said else "not yet"

        said: list[str] = []
        part = Supervised(Part("stand-in", start, problem, log, grace_s=0.3), lambda _, what: said.append(what))
        kept.append((part, asyncio.create_task(part.run())))
        return part, said

    yield keep
    for part, task in kept:
        await asyncio.wait_for(part.stop(), 20)
        await asyncio.wait_for(task, 20)


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_part_that_is_killed_is_started_again_and_ready_again(keep: Keep) -> None:
    part, said = await keep(STEADY)
    await asyncio.wait_for(part.ready.wait(), 20)
    first = part.pid
    assert first is not None

    os.kill(first, signal.SIGKILL)
    await _until(lambda: part.restarts == 1 and part.state == "ready")

    assert part.pid not in (None, first)
    assert said[-1:] == ["ready again"]
    assert any("ended with signal 9" in line for line in said)


async def test_a_part_that_always_ends_is_tried_for_ever_and_soon_called_hopeless(keep: Keep) -> None:
    part, _ = await keep(BROKEN)

    await asyncio.wait_for(part.hopeless.wait(), 20)
    before = part.restarts
    await _until(lambda: part.restarts > before)

    assert "ended with status 1" in str(part.problem)
    assert "no such setting" in part.part.log.read_text()


async def test_a_part_that_ignores_its_stop_signal_is_ended_by_force(keep: Keep) -> None:
    part, _ = await keep(DEAF)
    await asyncio.wait_for(part.ready.wait(), 20)
    pid = part.pid
    assert pid is not None

    await asyncio.wait_for(part.stop(), 20)

    assert part.state == "stopped"
    assert not _alive(pid)


async def test_a_stop_while_it_waits_to_start_again_ends_the_supervision(keep: Keep) -> None:
    part, _ = await keep(BROKEN)
    await _until(lambda: part.state == "restarting")

    await asyncio.wait_for(part.stop(), 20)

    assert part.state == "stopped"


async def test_a_service_ends_when_its_launcher_is_killed(tmp_path: Path) -> None:
    launcher = f"""
import asyncio, sys
from pathlib import Path
from weft_cli.embedded import processes
async def main():
    argv = (sys.executable, "-S", "-c", {STEADY!r})
    command = processes.Command(argv, processes.environment(), Path({str(tmp_path / "log")!r}))
    print((await processes.start(command)).pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", launcher, stdout=asyncio.subprocess.PIPE)
    assert started.stdout is not None
    pid = int(await asyncio.wait_for(started.stdout.readline(), 20))
    assert _alive(pid)

    started.kill()
    await started.wait()

    await _until(lambda: not _alive(pid))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan whose new parent doesn't collect it is dead all the same.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
