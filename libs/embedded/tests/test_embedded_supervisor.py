"""A part under supervision, with stand-ins for services."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from weft_embedded import maintenance, orders, server_process, service_process, shutdown, supervisor
from weft_embedded.service_process import Command, Process
from weft_embedded.supervisor import Part, SupervisedPart
from weft_servers import nats_server

STEADY = "import os,sys; os.read(int(os.environ['WEFT_LIFELINE_FD']), 1)"
"""A service that ends when its lifeline closes."""
DEAF = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
BROKEN = "import sys; sys.exit('no such setting')"

Keep = Callable[[str], Awaitable[tuple[SupervisedPart, list[str]]]]


@pytest_asyncio.fixture
async def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Keep]:
    """Puts a stand-in's program under supervision; ends it with the test."""
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.02)
    kept: list[tuple[SupervisedPart, asyncio.Task[None]]] = []

    async def keep(program: str) -> tuple[SupervisedPart, list[str]]:
        log = tmp_path / "stand-in.log"
        command = Command((sys.executable, "-S", "-c", program), service_process.environment(), log)

        async def start() -> Process:
            return await service_process.start(command)

        async def problem() -> str | None:
            said = await asyncio.to_thread(log.read_text)
            return None if program == STEADY or "deaf" in said else "not yet"

        said: list[str] = []
        part = SupervisedPart(Part("stand-in", start, problem, log, grace_s=0.3), lambda _, what: said.append(what))
        kept.append((part, asyncio.create_task(part.run())))
        return part, said

    yield keep
    for part, task in kept:
        await asyncio.wait_for(part.stop(), 30)
        await asyncio.wait_for(task, 30)


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_part_that_is_killed_is_started_again_and_ready_again(keep: Keep) -> None:
    part, said = await keep(STEADY)
    await asyncio.wait_for(part.ready.wait(), 30)
    first = part.pid
    assert first is not None

    os.kill(first, signal.SIGKILL)
    await _until(lambda: part.restarts == 1 and part.state == "ready")

    assert part.pid not in (None, first)
    assert said[-1:] == ["ready again"]
    assert any("ended with signal 9" in line for line in said)


async def test_a_part_that_always_ends_is_tried_for_ever_and_soon_called_hopeless(keep: Keep) -> None:
    part, _ = await keep(BROKEN)

    await asyncio.wait_for(part.hopeless.wait(), 30)
    before = part.restarts
    await _until(lambda: part.restarts > before)

    assert "ended with status 1" in str(part.problem)
    assert "no such setting" in part.part.log.read_text()


async def test_a_part_that_is_renewed_is_ended_in_order_and_starts_again_without_a_pause(
    keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 1000.0)
    part, said = await keep(STEADY)
    await asyncio.wait_for(part.ready.wait(), 30)
    first = part.pid

    await asyncio.wait_for(part.renew(), 30)
    await _until(lambda: part.restarts == 1 and part.state == "ready")

    assert part.pid not in (None, first)
    assert ["ready", "started anew", "ready again"] == said


async def test_a_part_that_waits_for_its_next_start_is_started_at_once_when_it_is_renewed(
    keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 1000.0)
    part, _ = await keep(BROKEN)
    await _until(lambda: part.state == "restarting")

    await asyncio.wait_for(part.renew(), 30)

    await _until(lambda: part.restarts == 2)


async def test_a_held_part_that_is_renewed_stays_down(keep: Keep) -> None:
    part, _ = await keep(STEADY)
    await asyncio.wait_for(part.ready.wait(), 30)
    part.part = replace(part.part, held=lambda: True)

    await asyncio.wait_for(part.renew(), 30)
    await _until(lambda: part.state == "held")
    await asyncio.wait_for(part.renew(), 30)

    assert ("held", None, 1) == (part.state, part.pid, part.restarts)


async def test_whoever_holds_the_lifeline_gives_orders_a_line_each_and_ends_all_by_closing_it() -> None:
    pipe, held = os.pipe()
    heard: list[tuple[str, str]] = []
    ended = asyncio.Event()
    orders.follow(pipe, lambda word, part: heard.append((word, part)), ended.set)

    os.write(held, orders.order(orders.ANEW, "scheduler") + b"anew-agent work")
    await _until(lambda: len(heard) == 1)
    os.write(held, b"er-1\n" + b"x" * 5000)
    await _until(lambda: len(heard) == 2)
    os.close(held)

    await asyncio.wait_for(ended.wait(), 30)
    assert [("anew", "scheduler"), ("anew-agent", "worker-1")] == heard
    os.close(pipe)


async def test_a_part_that_ignores_its_stop_signal_is_ended_by_force(keep: Keep) -> None:
    part, _ = await keep(DEAF)
    await asyncio.wait_for(part.ready.wait(), 30)
    pid = part.pid
    assert pid is not None

    await asyncio.wait_for(part.stop(), 30)

    assert part.state == "stopped"
    assert not _alive(pid)


async def test_a_stop_while_it_waits_to_start_again_ends_the_supervision(keep: Keep) -> None:
    part, _ = await keep(BROKEN)
    await _until(lambda: part.state == "restarting")

    await asyncio.wait_for(part.stop(), 30)

    assert part.state == "stopped"


async def test_a_stop_gives_a_start_up_that_hangs(tmp_path: Path) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hangs(given_up: Callable[[], bool]) -> server_process.Server:
        loop.call_soon_threadsafe(began.set)
        for _ in range(3000):
            if given_up():
                raise OSError("given up")
            time.sleep(0.02)
        raise AssertionError("nobody gave it up")

    async def never() -> str | None:
        return "not yet"

    part = SupervisedPart(
        Part("server", lambda: server_process.start(hangs), never, tmp_path / "log"), lambda _, __: None
    )
    running = asyncio.create_task(part.run())
    await asyncio.wait_for(began.wait(), 30)

    await asyncio.wait_for(part.stop(), 30)

    await asyncio.wait_for(running, 30)
    assert ("stopped", 0) == (part.state, part.restarts)


async def test_a_server_whose_supervisor_hangs_is_ended_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process, "SUPERVISOR_S", 0.2)
    with nats_server.start(tmp_path / "nats") as server:
        for each in (server.supervisor_pid, server.pid):
            os.kill(each, signal.SIGSTOP)

        await asyncio.wait_for(server_process.ServerProcess(server).stop(0.2), 30)

        await _until(lambda: not _alive(server.pid) and not _alive(server.supervisor_pid))


async def test_what_hangs_for_good_is_killed_and_the_launcher_with_it() -> None:
    done: list[object] = []
    ended = threading.Event()

    def end(status: int) -> None:
        done.append(status)
        ended.set()

    def kill() -> None:
        done.append("killed")
        raise OSError("even that may fail")

    kill_timer = shutdown.KillTimer(kill, end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda _: None)  # pyright: ignore
        kill_timer.within(0.01)
        assert await asyncio.to_thread(ended.wait, 20)
    assert ["killed", 1] == done


async def test_a_server_that_failed_at_a_write_is_started_anew_once_the_disk_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, fails, renewed = [0], [True], asyncio.Event()
    monkeypatch.setattr(maintenance.prerequisites, "disk_free", lambda _: free[0])  # pyright: ignore

    async def renew() -> None:
        fails[0] = False
        renewed.set()

    watch = asyncio.create_task(maintenance.restart_nats(tmp_path, lambda: fails[0], renew, look_s=0.001))
    await asyncio.sleep(0.05)
    assert not renewed.is_set()
    free[0] = 1 << 40
    await asyncio.wait_for(renewed.wait(), 30)
    watch.cancel()


async def test_a_service_ends_when_its_launcher_is_killed(tmp_path: Path) -> None:
    launcher = f"""
import asyncio, sys
from pathlib import Path
from weft_embedded import service_process
async def main():
    argv = (sys.executable, "-S", "-c", {STEADY!r})
    command = service_process.Command(argv, service_process.environment(), Path({str(tmp_path / "log")!r}))
    print((await service_process.start(command)).pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", launcher, stdout=asyncio.subprocess.PIPE)
    assert started.stdout is not None
    pid = int(await asyncio.wait_for(started.stdout.readline(), 30))
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
