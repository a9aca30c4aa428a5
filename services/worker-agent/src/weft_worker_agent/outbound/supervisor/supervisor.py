"""The supervisor: parent of a node's agent and of its engine hosts.

It stays resident beside every worker, so it imports next to nothing: no asyncio, one thread, one poll.
An agent that dies is started again and finds its hosts through the socket; when the supervisor ends, all ends. At
SIGUSR1 it starts the agent anew, from what is installed by then: the hosts go on.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable

from weft_runtime import secret_pipe

from weft_worker_agent.outbound.supervisor import child, orphans, release
from weft_worker_agent.outbound.supervisor.agent_process import AgentProcess
from weft_worker_agent.outbound.supervisor.commands import CommandHandler
from weft_worker_agent.outbound.supervisor.control_socket import Client, ControlSocket
from weft_worker_agent.outbound.supervisor.environment import AGENT, chosen
from weft_worker_agent.outbound.supervisor.host_process import HostProcess
from weft_worker_agent.outbound.supervisor.join_token import DESCRIPTOR
from weft_worker_agent.outbound.supervisor.options import Options
from weft_worker_agent.outbound.supervisor.state_folder import StateFolder

AGENT_MARGIN_S = 10.0
"""Above the grace time: what the agent needs to retire its hosts by force and to report their ends."""
HOSTS_TERM_S = 3.0
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_AGENT_ANEW = signal.SIGUSR1
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


class Supervisor:
    """One supervisor in one state folder. `run` returns the exit status."""

    def __init__(self, options: Options, folder: StateFolder) -> None:
        self._options = options
        self._poll = select.poll()
        self._on: dict[int, Callable[[int], None]] = {}
        self._commands = CommandHandler(folder.logs, self._host_started)
        self._socket = ControlSocket(folder.socket, self._commands.answer)
        self._agent = AgentProcess(self._start_agent, log)
        self._command = options.agent
        self._stage = "running"
        self._deadline: float | None = None
        self._status = 0
        orphans.adopt_orphans()
        self._watch(self._socket.fd, self._accept)
        if options.lifeline >= 0:
            os.set_inheritable(options.lifeline, False)
            self._watch(options.lifeline, self._launcher)
        self._wake, wake_end = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, _AGENT_ANEW, *_ENDING):
            signal.signal(number, _wake_pipe_is_written)
        self._watch(self._wake, self._signalled)

    def run(self) -> int:
        """Keep until told to end, by a signal or by the launcher's end; then end the agent, then the hosts."""
        try:
            self._agent.start(time.monotonic())
            log("supervisor started", pid=os.getpid(), socket=self._socket.path)
            while self._stage != "ended":
                for fd, event in self._poll.poll(self._wait_ms()):
                    if fd in self._on:
                        self._on[fd](event)
                self._step(time.monotonic())
            log("supervisor ended", status=self._status)
            return self._status
        finally:
            self._socket.close()

    def _step(self, now: float) -> None:
        """What time and ends bring: the agent's next start, the stages of the end."""
        if self._stage == "running":
            if self._agent.gave_up is not None:
                self._end(f"the agent ended with status {self._agent.gave_up}: starting it again is in vain")
                self._status = self._agent.gave_up
            elif self._agent.due is not None and now >= self._agent.due:
                self._agent.start(now)
        if self._stage == "agent" and not self._agent.pid:
            self._end_hosts(now)
        if self._stage == "hosts" and not self._commands.living():
            self._stage = "ended"
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None  # KILL is certain; nothing more can be done than to wait for the kernel
            if self._stage == "agent":
                log("agent killed: it did not end in time", pid=self._agent.pid)
                self._agent.end(signal.SIGKILL)
            for host in self._commands.living() if self._stage == "hosts" else ():
                log("host killed: it did not end in time", host=host.id, pid=host.pid)
                host.end(signal.SIGKILL)

    def _end(self, why: str) -> None:
        if self._stage == "agent":
            self._hurry(why)
        if self._stage != "running":
            return
        log("supervisor ends", why=why)
        if not self._options.drain_s:
            self._commands.close()
        self._stage = "agent"
        self._deadline = time.monotonic() + self._options.drain_s + self._options.grace_s + AGENT_MARGIN_S
        self._agent.end()

    def _hurry(self, why: str) -> None:
        """Told to end once more: nothing waits any longer."""
        log("supervisor hurries", why=why)
        self._deadline = time.monotonic() + AGENT_MARGIN_S
        self._agent.end(signal.SIGINT)

    def _end_hosts(self, now: float) -> None:
        self._stage = "hosts"
        self._commands.close()
        self._deadline = now + HOSTS_TERM_S
        for host in self._commands.living():
            host.end(signal.SIGTERM)

    def _wait_ms(self) -> float | None:
        times = [at for at in (self._deadline, self._agent.due) if at is not None]
        return max(0.0, min(times) - time.monotonic()) * 1000 + 1 if times else None

    def _start_agent(self) -> tuple[int, int]:
        env = chosen(AGENT) | {"WEFT_STATE": self._options.state, "WEFT_KEEPER_SOCKET": self._socket.path}
        if not self._options.join_token:
            return child.start(self._command, env)
        descriptor = secret_pipe.give(self._options.join_token)
        try:
            return child.start(self._command, env | {DESCRIPTOR: str(descriptor)})
        finally:
            os.close(descriptor)

    def _signalled(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            numbers = os.read(self._wake, 512)
            if ending := [number for number in numbers if number in _ENDING]:
                self._end(signal.Signals(ending[0]).name)
            elif _AGENT_ANEW in numbers and self._stage == "running":
                self._command = release.newest(self._options.agent)
                self._agent.renew(time.monotonic())
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._child_ended(pid, status)
            self._end_orphans()

    def _child_ended(self, pid: int, status: int) -> None:
        if pid == self._agent.pid:
            code = os.waitstatus_to_exitcode(status)
            self._agent.ended(code, time.monotonic(), again=self._stage == "running")
        elif (host := self._commands.of_pid(pid)) is not None:
            for fd in host.pipes:
                self._unwatch(fd)
            if host.secrets is not None:
                self._unwatch(host.secrets.writing)
            host.ended(status)
            log("host ended", host=host.id, pid=pid, status=host.exit_code)
            self._socket.tell(host.id)

    def _end_orphans(self) -> None:
        """Whenever a child ends: it may have been a host, or one of what a host left behind, which had its own."""
        living = self._commands.living()
        if left := orphans.orphans([host.id for host in living], [self._agent.pid, *(host.pid for host in living)]):
            log("left behind by a host, and killed", pids=left)
            orphans.end(left)

    def _launcher(self, _: int) -> None:
        if not os.read(self._options.lifeline, 512):
            self._unwatch(self._options.lifeline)
            self._end("its launcher is gone")

    def _host_started(self, host: HostProcess) -> None:
        log("host started", host=host.id, pid=host.pid)
        for fd in host.pipes:
            self._watch(fd, lambda _, fd=fd: self._hear(host, fd))

    def _hear(self, host: HostProcess, fd: int) -> None:
        still_open, new_status = host.hear(fd)
        if not still_open:
            self._unwatch(fd)
        if new_status:
            self._socket.tell(host.id)
        self._settle()

    def _accept(self, _: int) -> None:
        if (client := self._socket.accept()) is not None:
            self._watch(client.fd, lambda event: self._served(client, event))

    def _served(self, client: Client, event: int) -> None:
        if event & select.POLLOUT:
            client.flush()
        if event & _READABLE:
            self._socket.serve(client)
        self._settle()

    def _settle(self) -> None:
        """Drop clients that are gone, and wait for room where something is still to be sent."""
        for client in list(self._socket.by_fd.values()):
            if not client.open:
                self._unwatch(client.fd)
                self._socket.drop(client)
            else:
                self._poll.modify(client.fd, select.POLLIN | (select.POLLOUT if client.wants_to_write else 0))
        for host in self._commands.living():
            if host.secrets is not None and host.secrets.waits and host.secrets.writing not in self._on:
                self._watch(host.secrets.writing, lambda _, host=host: self._told(host), select.POLLOUT)

    def _told(self, host: HostProcess) -> None:
        """There is room in a host's pipe, or its other end is closed."""
        if host.secrets is not None:
            self._unwatch(host.secrets.writing)
            host.secrets.flush()
        self._settle()

    def _watch(self, fd: int, on: Callable[[int], None], event: int = select.POLLIN) -> None:
        self._on[fd] = on
        self._poll.register(fd, event)

    def _unwatch(self, fd: int) -> None:
        if self._on.pop(fd, None) is not None:
            self._poll.unregister(fd)


def _wake_pipe_is_written(_number: int, _frame: object) -> None:
    """A handler there must be, or the wake pipe stays empty."""


def log(event: str, **fields: object) -> None:
    """A line for people and machines, as the services' logs have them."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = {
        "event": event,
        "level": "info",
        "part": "weft.supervisor",
        "service": "worker-agent",
        "timestamp": now,
        **fields,
    }
    with contextlib.suppress(OSError):  # nobody reads it any more
        os.write(2, json.dumps(line, ensure_ascii=False).encode() + b"\n")


def run(options: Options) -> int:
    """Keep a worker in its state folder; the exit status of the process."""
    try:
        with StateFolder(options.state) as folder:
            return Supervisor(options, folder).run()
    except OSError as error:
        print(f"weft worker: {error}", file=sys.stderr)
        return 1
