"""A mesh on several machines of a wire: one runs it, the others work for it; the test speaks with it from outside."""

import os
import shlex
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Self

import httpx

from weft_testing.lan import Machine
from weft_testing.story import NotInTime

_STOP_S = 60.0
_READY_S = 30.0


class Door:
    """A relay that runs on a machine, see `weft_testing.relay`."""

    def __init__(self, machine: Machine, listen: str, target: str) -> None:
        self._process = subprocess.Popen(
            machine.argv([sys.executable, "-m", "weft_testing.relay", listen, target]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        if b"ready\n" != self._process.stdout.readline():
            self.close()
            raise NotInTime(f"no relay from {listen} to {target} on {machine.name}")

    def close(self) -> None:
        """Let it end."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(_READY_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_READY_S)


class WorkerUnderTest:
    """A worker on a machine of the wire, started by a line as people paste it. It ends with this process."""

    def __init__(self, machine: Machine, line: str, folder: Path, *options: str, **settings: str) -> None:
        words = shlex.split(line)
        if words[:2] != ["weft", "worker"]:
            raise AssertionError(f"no line that makes a worker: {line!r}")
        folder.mkdir(exist_ok=True)
        self.machine = machine
        self.state = folder / machine.name
        self._log = folder / f"{machine.name}.log"
        command = [sys.executable, "-m", "weft_cli", *words[1:], "--state", str(self.state), *options]
        lifeline, self._lifeline = os.pipe()
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                machine.argv(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=kept | settings | {"WEFT_LIFELINE_FD": str(lifeline)},
                pass_fds=(lifeline,),
                start_new_session=True,
            )
        os.close(lifeline)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The supervisor's exit status; None while it runs."""
        return self._process.poll()

    def log(self) -> str:
        """What it said."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """End it in order, by force if that takes too long."""
        if self._lifeline < 0:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_S)
        os.close(self._lifeline)
        self._lifeline = -1


def client(socket: Path, *, authority: Path | None = None, timeout: float = 90.0) -> httpx.Client:
    """A client that speaks through the Unix socket of a `Door`, whatever host its URLs name.

    `authority`: the certificate of the mesh's own, which then is demanded.
    """
    verify = ssl.create_default_context(cafile=authority) if authority is not None else True
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(socket), verify=verify), timeout=timeout)
