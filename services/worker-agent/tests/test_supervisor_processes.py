"""The supervisor with real processes: it starts, tells, reaps, and takes everything along at its end."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from weft_worker_agent.outbound.processes.supervisor_client import (
    SupervisedHost,
    SupervisorClient,
    SupervisorGone,
    SupervisorRefused,
)
from weft_worker_agent.outbound.supervisor.agent_process import BAD_CONFIGURATION, LONGEST_WAIT_S, AgentProcess
from weft_worker_agent.outbound.supervisor.host_output import HostOutput, Lines
from weft_worker_agent.outbound.supervisor.options import BadOption, parse

RUN = """
import json, sys
from weft_worker_agent.outbound.supervisor import supervisor, options
state, lifeline, agent, drain = sys.argv[1], int(sys.argv[2]), tuple(json.loads(sys.argv[3])), float(sys.argv[4])
sys.exit(supervisor.run(options.Options(state=state, agent=agent, lifeline=lifeline, grace_s=1.0, drain_s=drain)))
"""
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}', flush=True); time.sleep(600)",
]


class RunningSupervisor:
    """A running supervisor of a test, and the way to talk to it."""

    def __init__(self, state: Path, env: dict[str, str], agent: list[str], lifeline: int = -1, drain: int = 0) -> None:
        self.state = state
        self.log = state.parent / "supervisor.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN, str(state), str(lifeline), json.dumps(agent), str(drain)],
                env=env,
                stderr=log,
                pass_fds=(lifeline,) if lifeline >= 0 else (),
            )
        self.client = SupervisorClient(state / "keeper.sock")

    async def ready(self) -> None:
        await until(lambda: (self.state / "keeper.sock").exists())

    async def host(self, id: str) -> SupervisedHost:
        return next(host for host in await self.client.hosts() if host.host_id == id)

    async def spawn(self, id: str, argv: list[str], secrets: str | None = None, **launch: Any) -> int:
        return await self.client.spawn(id, argv, dict(os.environ), launch, secrets)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def agents(self) -> list[int]:
        found: list[int] = []
        for child in self.children():
            with contextlib.suppress(psutil.Error):  # it has just ended
                found += [child.pid] if "agent-of-a-test" in child.cmdline() else []
        return found


DRAINS = [
    sys.executable,
    "-c",
    "import signal, sys, time\n"
    "def say(text): print('agent', text, file=sys.stderr, flush=True)\n"
    "signal.signal(signal.SIGTERM, lambda *_: say('drains'))\n"
    "signal.signal(signal.SIGINT, lambda *_: (say('hurries'), sys.exit(0)))\n"
    "say('is there')\n"
    "while True: time.sleep(1)",
]
AGENT = [*SLEEP, "agent-of-a-test"]
StartSupervisor = Callable[..., Awaitable[RunningSupervisor]]


@pytest.fixture
async def start_supervisor(tmp_path: Path, process_env: dict[str, str]) -> AsyncIterator[StartSupervisor]:
    """Start supervisors; each is killed at the end, with whatever it still has."""
    running: list[RunningSupervisor] = []

    async def start(
        state: Path = tmp_path / "state", agent: list[str] = AGENT, lifeline: int = -1, drain: int = 0
    ) -> RunningSupervisor:
        one = RunningSupervisor(state, process_env, agent, lifeline, drain)
        running.append(one)
        await one.ready()
        return one

    yield start
    for one in running:
        one.client.close()
        children = one.children() if one.process.poll() is None else []
        one.process.kill()
        one.process.wait(30)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


async def until(holds: Callable[[], Any], timeout: float = 30.0) -> None:
    """Wait until something holds. A bound for a broken system, not a measure of a sound one."""
    async with asyncio.timeout(timeout):
        while not holds():
            await asyncio.sleep(0.02)


async def until_host(running: RunningSupervisor, id: str, holds: Callable[[SupervisedHost], Any]) -> SupervisedHost:
    async with asyncio.timeout(30):
        while not holds(host := await running.host(id)):
            await asyncio.sleep(0.02)
    return host


async def test_a_host_is_known_by_its_launch_its_last_status_and_its_end(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    script = 'echo \'{"phase": "loading"}\'; echo \'{"phase": "failed"}\'; echo no memory >&2; exit 3'

    pid = await running.spawn("a", ["/bin/sh", "-c", script], replica="m-1", incarnation="i-1")

    host = await until_host(running, "a", lambda host: host.exit_code is not None)
    assert (
        SupervisedHost("a", pid, {"replica": "m-1", "incarnation": "i-1"}, {"phase": "failed"}, 3, ("no memory",))
        == host
    )
    assert '{"phase": "loading"}\n' in (running.state / "logs" / "host-m-1.log").read_text()


async def test_a_command_that_does_not_exist_ends_with_its_reason(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    await running.spawn("a", ["/no/such/command"])

    host = await until_host(running, "a", lambda host: host.exit_code is not None)

    assert 127 == host.exit_code
    assert "cannot start /no/such/command" in host.stderr[0]


async def test_only_an_ended_host_is_reaped_and_then_it_is_gone(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    await running.spawn("a", SLEEP)
    with pytest.raises(SupervisorRefused, match="host a still runs: signal it first"):
        await running.client.reap("a")

    await running.client.signal("a", "TERM")
    host = await until_host(running, "a", lambda host: host.exit_code is not None)
    await running.client.reap("a")

    assert -signal.SIGTERM == host.exit_code
    assert [] == await running.client.hosts()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"op": "dance"}, "'dance' is no request"),
        ([], "want an object"),
        ({"op": "spawn", "host_id": "../x", "argv": ["a"], "env": {}, "launch": {}}, "host_id '../x'"),
        ({"op": "spawn", "host_id": "x", "argv": [], "env": {}, "launch": {}}, "argv: want a list"),
        ({"op": "spawn", "host_id": "x", "argv": ["a"], "env": {"A": 1}, "launch": {}}, "env: want an object"),
        ({"op": "signal", "host_id": "x", "signal": "STOP"}, "signal 'STOP': want TERM, INT or KILL"),
        ({"op": "reap", "host_id": "x"}, "there is no host 'x'"),
    ],
)
async def test_a_bad_request_is_answered_with_one_sentence(
    start_supervisor: StartSupervisor, request_: Any, error: str
) -> None:
    running = await start_supervisor()

    with pytest.raises(SupervisorRefused) as refused:
        await running.client._ask(request_)

    assert error in str(refused.value)


async def test_followers_are_told_of_every_change(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    changes = running.client.changes()
    await anext(changes)

    await running.spawn("a", ["/bin/sh", "-c", 'echo \'{"phase": "ready"}\'; sleep 600'])
    async with asyncio.timeout(30):
        await anext(changes)
        assert {"phase": "ready"} == (await running.host("a")).status
        await running.client.signal("a", "KILL")
        await anext(changes)
    assert -signal.SIGKILL == (await running.host("a")).exit_code
    await changes.aclose()  # type: ignore[attr-defined]


async def test_an_agent_that_dies_is_started_again_and_the_hosts_run_on(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    await until(running.agents)
    host = await running.spawn("a", SLEEP)
    first = running.agents()[0]

    os.kill(first, signal.SIGKILL)

    await until(lambda: running.agents() not in ([], [first]))
    assert (host, None) == ((await running.host("a")).pid, (await running.host("a")).exit_code)
    assert '"agent ended"' in running.log.read_text()


async def test_told_so_it_starts_the_agent_anew_and_the_hosts_run_on(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    await until(running.agents)
    host = await running.spawn("a", SLEEP)
    first = running.agents()[0]

    running.process.send_signal(signal.SIGUSR1)

    await until(lambda: running.agents() not in ([], [first]))
    assert (host, None) == ((await running.host("a")).pid, (await running.host("a")).exit_code)
    assert '"agent starts anew"' in running.log.read_text()


WANDERER = (
    "import os, signal, time\n"
    "if not os.fork():\n"
    "    os.setsid()\n"
    "    parent = os.getpid()\n"
    "    if os.fork(): os._exit(0)\n"
    "    while os.getppid() == parent: time.sleep(0.01)\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "    print('{\"wanderer\": %d}' % os.getpid(), flush=True)\n"
    "    time.sleep(600)\n"
    "os.wait()\n"
    "time.sleep(600)"
)
"""A host that starts a process in a session of its own, whose parent has ended, and that heeds no TERM."""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are the first process's elsewhere")
async def test_what_a_host_leaves_behind_in_a_session_of_its_own_is_ended_with_it_and_not_before(
    start_supervisor: StartSupervisor,
) -> None:
    # given two hosts, each with such a process
    running = await start_supervisor()
    for id in ("a", "b"):
        await running.spawn(id, [sys.executable, "-c", WANDERER])
    said = [(await until_host(running, id, lambda host: host.status is not None)).status for id in ("a", "b")]
    one, other = (psutil.Process(each["wanderer"]) for each in said if each is not None)
    assert {running.process.pid} == {one.ppid(), other.ppid()}
    # when one of the hosts is killed
    await running.client.signal("a", "KILL")
    # then what it left is gone, and the other's lives
    await until(lambda: not one.is_running())
    assert "left behind by a host" in running.log.read_text()
    assert other.is_running()
    # until its host ends by itself
    running.process.terminate()
    await asyncio.to_thread(running.process.wait, 30)
    await until(lambda: not other.is_running())


async def test_a_killed_supervisor_takes_agent_and_hosts_along(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    await running.spawn("a", SLEEP)
    await running.spawn("b", STUBBORN)
    await until_host(running, "b", lambda host: host.status is not None)
    await until(running.agents)
    children = running.children()
    assert 3 == len(children)

    running.process.kill()

    await until(lambda: not any(child.is_running() for child in children))


async def test_a_supervisor_that_is_told_to_end_ends_all_even_who_will_not(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    await running.spawn("a", SLEEP)
    await running.spawn("b", STUBBORN)
    await until_host(running, "b", lambda host: host.status is not None)
    await until(running.agents)
    children = running.children()

    running.process.terminate()
    await asyncio.to_thread(running.process.wait, 30)

    assert (0, []) == (running.process.returncode, [child for child in children if child.is_running()])
    assert not (running.state / "keeper.sock").exists()


async def test_a_second_signal_ends_a_supervisor_whose_agent_drains(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor(agent=DRAINS, drain=600)
    await until(lambda: "agent is there" in running.log.read_text())

    running.process.terminate()
    await until(lambda: "agent drains" in running.log.read_text())
    # meanwhile it starts what was placed here before
    await running.spawn("a", SLEEP)
    assert running.process.poll() is None
    running.process.terminate()
    await asyncio.to_thread(running.process.wait, 30)

    assert 0 == running.process.returncode
    assert "agent hurries" in running.log.read_text()


async def test_the_end_of_the_launcher_ends_the_supervisor(start_supervisor: StartSupervisor) -> None:
    lifeline, end = os.pipe()
    running = await start_supervisor(lifeline=lifeline)
    os.close(lifeline)
    await running.spawn("a", SLEEP)
    children = running.children()

    os.close(end)
    await asyncio.to_thread(running.process.wait, 30)

    assert [] == [child for child in children if child.is_running()]


async def test_an_agent_that_can_never_start_ends_the_supervisor_with_its_status(
    start_supervisor: StartSupervisor,
) -> None:
    agent = ["/bin/sh", "-c", f"sleep 0.3; echo WEFT_JOIN_TOKEN is wrong >&2; exit {BAD_CONFIGURATION}"]
    running = await start_supervisor(agent=agent)

    assert BAD_CONFIGURATION == await asyncio.to_thread(running.process.wait, 30)
    assert "WEFT_JOIN_TOKEN is wrong" in running.log.read_text()


async def test_a_second_supervisor_on_one_state_is_refused(start_supervisor: StartSupervisor) -> None:
    first = await start_supervisor()

    second = await start_supervisor()
    await asyncio.to_thread(second.process.wait, 30)

    assert 1 == second.process.returncode
    said = second.log.read_text()
    assert f"in use by another worker (process {first.process.pid})" in said


async def test_a_long_state_path_gets_a_short_socket(tmp_path: Path, process_env: dict[str, str]) -> None:
    state = tmp_path / ("x" * 120)
    running = RunningSupervisor(state, process_env, AGENT)
    await until(lambda: "supervisor started" in (running.log.read_text() if running.log.exists() else ""))
    socket = Path(json.loads(running.log.read_text().splitlines()[0])["socket"])
    client = SupervisorClient(socket)
    assert [] == await client.hosts()
    client.close()

    running.process.terminate()
    await asyncio.to_thread(running.process.wait, 30)

    assert not socket.parent.exists()


async def test_a_client_without_a_supervisor_says_so(tmp_path: Path) -> None:
    with pytest.raises(SupervisorGone, match="does not answer"):
        await SupervisorClient(tmp_path / "keeper.sock").hosts()


def test_an_agent_that_keeps_dying_is_started_ever_slower_and_never_given_up() -> None:
    life = AgentProcess(lambda: (42, -1), lambda *_args, **_fields: None)
    now, waits = 0.0, list[float]()
    for _ in range(12):
        life.start(now)
        life.ended(1, now + 1, again=True)
        assert life.due is not None
        waits.append(round(life.due - now - 1, 3))
        now = life.due

    assert [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, *[LONGEST_WAIT_S] * 6] == waits


def test_a_line_without_an_end_does_not_grow() -> None:
    lines = Lines(10)

    assert [b"a" * 10] == lines.feed(b"a" * 50)
    assert [] == lines.feed(b"a" * 50)
    assert [b"next"] == lines.feed(b"aa\nnext\nhalf")
    assert [b"half"] == lines.end()


def test_the_output_of_a_host_keeps_the_last_lines_and_the_last_status(tmp_path: Path) -> None:
    output = HostOutput(str(tmp_path / "host.log"))
    for number in range(80):
        output.stderr_line(b"line %d" % number)
    assert output.stdout_line(b'{"phase": "ready"}')
    assert not output.stdout_line(b"{not json")

    assert (50, "{not json") == (len(output.tail), output.tail[-1])
    assert {"phase": "ready"} == output.status


@pytest.mark.parametrize(
    ("arguments", "environ", "error"),
    [
        (["--nope"], {}, "--nope is no flag"),
        (["--state"], {}, "--state needs a value"),
        (["--lifeline", "x"], {}, "no open file descriptor"),
        ([], {"WEFT_STOP_TIMEOUT": "soon"}, "WEFT_STOP_TIMEOUT='soon': want seconds"),
        ([], {"WEFT_STOP_TIMEOUT": "0"}, "above 0 and up to 600"),
        ([], {"WEFT_DRAIN_TIMEOUT": "-1"}, "from 0 and up to 3600"),
    ],
)
def test_a_bad_option_is_named(arguments: list[str], environ: dict[str, str], error: str) -> None:
    with pytest.raises(BadOption, match=error):
        parse(arguments, environ)


READS = [
    sys.executable,
    "-c",
    "import hashlib, json, sys\n"
    "for line in open(int(sys.argv[1])):\n"
    "    print(json.dumps({'phase': hashlib.sha256(line.encode()).hexdigest()}), flush=True)",
    "{secrets}",
]
"""A host that says of each secret which one it was told."""


def said_of(line: str) -> dict[str, str]:
    return {"phase": hashlib.sha256(line.encode()).hexdigest()}


async def test_a_host_is_told_secrets_through_a_pipe_and_nothing_else_has_them(
    start_supervisor: StartSupervisor,
) -> None:
    running = await start_supervisor()
    first, second = f"{os.urandom(16).hex()}\n", f"{os.urandom(100_000).hex()}\n"  # more than a pipe holds
    pid = await running.spawn("a", READS, first, replica="m-1")
    await until_host(running, "a", lambda host: host.status == said_of(first))
    # when it is told another while it runs
    await running.client.tell("a", second)
    host = await until_host(running, "a", lambda host: host.status == said_of(second))
    # then neither what is listed, nor a file, nor its command and environment has either
    places = [repr(host).encode(), *(file.read_bytes() for file in running.state.rglob("*") if file.is_file())]
    for process in map(psutil.Process, (pid, running.process.pid)):
        places += [repr((process.environ(), process.cmdline())).encode()]
    places += [running.log.read_bytes()]
    assert [] == [place for place in places if first.strip().encode() in place or second.strip().encode() in place]


async def test_a_host_that_reads_no_secrets_holds_up_nobody(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    await running.spawn("deaf", [*SLEEP, "{secrets}"], "x" * 300_000)
    await running.spawn("plain", SLEEP)
    for _ in range(2):
        await running.client.tell("deaf", "x" * 300_000)
    with pytest.raises(SupervisorRefused, match="reads no secrets"):
        await running.client.tell("deaf", "x" * 600_000)
    with pytest.raises(SupervisorRefused, match="was started without secrets"):
        await running.client.tell("plain", "x")
    # and its end is as any other's
    await running.client.signal("deaf", "KILL")
    await until_host(running, "deaf", lambda host: host.exit_code is not None)
    await running.client.tell("deaf", "x")
    await running.client.reap("deaf")


async def test_a_host_that_closes_its_pipe_runs_on_and_is_told_no_more(start_supervisor: StartSupervisor) -> None:
    running = await start_supervisor()
    closes = "import os, sys, time; os.close(int(sys.argv[1])); print('{}', flush=True); time.sleep(600)"
    await running.spawn("a", [sys.executable, "-c", closes, "{secrets}"], "x" * 300_000)
    await until_host(running, "a", lambda host: host.status == {})
    for _ in range(3):
        await running.client.tell("a", "x" * 300_000)
    assert (await running.host("a")).exit_code is None
