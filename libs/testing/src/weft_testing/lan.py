"""Machines on one wire: network namespaces of this machine, in a user namespace, so that no root is needed.

One process owns the user namespace and the switch; each machine is a process with a network namespace of its own, on a
cable to that switch. All of them read from pipes that this process holds, so they end with it, and with the last
process in a namespace the kernel takes away what was in it: nothing is left on the machine.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import pytest

_TOOLS = ("unshare", "nsenter", "ip")
_BOUND_S = 30.0
_NETWORK = "10.77.0."


class NoNamespaces(RuntimeError):
    """No machines can be made here; the message says why."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine on the wire."""

    name: str
    address: str
    pid: int
    """Of the process that holds its namespace."""

    def argv(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on this machine, as the user of this process and without any right over
        the network. The process is that very one: nothing stands between."""
        user = (f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}")
        return [*_entering(self.pid), "unshare", "--user", *user, "--", *command]


class Lan:
    """Machines on one switch. Use it as a context manager. Raises NoNamespaces."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._held: list[subprocess.Popen[bytes]] = []
        self._machines: dict[str, Machine] = {}

    def __getitem__(self, name: str) -> Machine:
        return self._machines[name]

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cut(self, name: str) -> None:
        """Pull a machine's cable out: nothing goes either way, and nobody is told."""
        self.switch("ip", "link", "set", f"port-{name}", "down")

    def mend(self, name: str) -> None:
        """Put the cable back."""
        self.switch("ip", "link", "set", f"port-{name}", "up")

    def narrow(self, name: str, bits: int) -> None:
        """Let so many bits a second through a machine's cable, each way; what goes in 0.2 s waits, more is lost. Needs
        `tc`. Raises NoNamespaces."""
        _require("tc")
        shape = ("tc", "qdisc", "replace", "dev")
        how = ("root", "tbf", "rate", f"{bits}bit", "burst", f"{max(bits // 800, 65536)}", "latency", "200ms")
        self.switch(*shape, f"port-{name}", *how)
        _run([*_entering(self._machines[name].pid), *shape, "eth0", *how])

    def switch(self, *command: str) -> str:
        """What a command says that runs where the switch is, whose ports are named for the machines."""
        return _run([*_entering(self._owner), *command])

    def close(self) -> None:
        """Let all namespaces go. What still runs in them keeps its own until it ends."""
        for each in reversed(self._held):
            assert each.stdin is not None
            each.stdin.close()
            try:
                each.wait(_BOUND_S)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait(_BOUND_S)
            assert each.stderr is not None
            each.stderr.close()
        self._held.clear()

    def _make(self) -> None:
        _require(*_TOOLS)
        owner = self._hold(["unshare", "--user", "--map-root-user", "--net", "--", "cat"], os.getpid())
        self._owner = owner
        self.switch("ip", "link", "add", "switch", "type", "bridge")
        self.switch("ip", "link", "set", "switch", "up")
        for number, name in enumerate(self._names, start=1):
            pid = self._hold([*_entering(owner), "unshare", "--net", "--", "cat"], owner)
            address = f"{_NETWORK}{number}"
            port = f"port-{name}"
            self.switch("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
            self.switch("ip", "link", "set", port, "master", "switch", "up")
            for words in (
                ("link", "set", "lo", "up"),
                ("addr", "add", f"{address}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
            ):
                _run([*_entering(pid), "ip", *words])
            self._machines[name] = Machine(name, address, pid)

    def _hold(self, command: list[str], outside: int) -> int:
        """Start a process that only holds its namespace, and wait until that is another than the one of `outside`."""
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        self._held.append(process)
        deadline = time.monotonic() + _BOUND_S
        while not _apart(process.pid, outside):
            if process.poll() is not None:
                assert process.stderr is not None
                said = process.stderr.read().decode(errors="replace").strip()
                raise NoNamespaces(f"`{' '.join(command)}` ended: {said}")
            if time.monotonic() > deadline:
                raise NoNamespaces(f"`{' '.join(command)}` made no namespace within {_BOUND_S:g} s")
            time.sleep(0.01)
        return process.pid


@contextmanager
def wired(*names: str) -> Generator[Lan]:
    """Machines for tests. Where none can be made the test is skipped as not run, and fails under CI."""
    lan = Lan(*names)
    try:
        lan.__enter__()
    except NoNamespaces as why:
        text = f"not run: no machines in network namespaces can be made here: {why}"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(text)
    try:
        yield lan
    finally:
        lan.close()


def _require(*tools: str) -> None:
    if lacking := [tool for tool in tools if shutil.which(tool) is None]:
        raise NoNamespaces(f"{' and '.join(lacking)} not found (Debian, Ubuntu: apt install util-linux iproute2)")


def _entering(pid: int) -> list[str]:
    """How a command gets into the namespaces of a process, with every right there."""
    return ["nsenter", "--target", str(pid), "--user", "--preserve-credentials", "--net", "--"]


def _apart(pid: int, outside: int) -> bool:
    """Whether a process holds a network of its own by now, having become `cat`."""
    try:
        runs = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        own, other = (os.readlink(f"/proc/{each}/ns/net") for each in (pid, outside))
    except OSError:
        return False
    return own != other and runs not in ("unshare", "nsenter")


def _run(command: list[str]) -> str:
    """Run a command of the harness; what it said. Raises NoNamespaces where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_BOUND_S)
    if done.returncode:
        raise NoNamespaces(f"`{' '.join(command)}`: {done.stderr.strip() or done.returncode}")
    return done.stdout
