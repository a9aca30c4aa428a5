"""One engine host as its parent sees it: its process, its output, its end."""

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft_worker_agent.outbound.supervisor import child
from weft_worker_agent.outbound.supervisor.host_output import MAX_LINE, MAX_STATUS, HostOutput, Lines
from weft_worker_agent.outbound.supervisor.secret_pipe import SecretPipe

_READ = 64 * 1024


class HostProcess:
    """A started host. `exit_code` is None while it lives; negative: the signal that ended it."""

    def __init__(
        self,
        host_id: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        launch: dict[str, object],
        *,
        log: str,
        secrets: bytes | None = None,
    ) -> None:
        """`secrets`: the first lines for the pipe by which it is told secrets; None: it gets no such pipe."""
        self.id = host_id
        self.launch = launch
        self.output = HostOutput(log)
        self.exit_code: int | None = None
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self.secrets = SecretPipe(secrets) if secrets is not None else None
        reading = self.secrets.reading if self.secrets is not None else None
        try:
            self.pid, self._lifeline = child.start(argv, env, stdout=out_end, stderr=err_end, secrets=reading)
        finally:
            os.close(out_end)
            os.close(err_end)
            if self.secrets is not None:
                self.secrets.started()
        self._pipes: dict[int, tuple[Lines, Callable[[bytes], object]]] = {
            out: (Lines(MAX_STATUS), self.output.stdout_line),
            err: (Lines(MAX_LINE), self.output.stderr_line),
        }
        for fd in self._pipes:
            os.set_blocking(fd, False)

    @property
    def pipes(self) -> tuple[int, ...]:
        """The descriptors that are still open for reading."""
        return tuple(self._pipes)

    def hear(self, fd: int) -> tuple[bool, bool]:
        """Read once from a pipe: whether it is still open, and whether a new status came."""
        lines, take = self._pipes[fd]
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return True, False
        news = [take(line) for line in (lines.feed(data) if data else lines.end())]
        if not data:
            os.close(fd)
            del self._pipes[fd]
        return bool(data), any(new is True for new in news)

    def end(self, number: int) -> None:
        """Send a signal to the host's process group, which is its own. An ended one is no error."""
        if self.exit_code is None:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:  # just forked: it has no group of its own yet
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)

    def ended(self, status: int) -> None:
        """Note its end: read what it still said, and end what it left behind in its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for fd in self.pipes:
            for _ in range(16):  # bounded: a pipe holds 64 KiB; a grandchild may hold the other end open
                if fd not in self._pipes or not self._more(fd):
                    break
            if fd in self._pipes:
                os.close(fd)
                del self._pipes[fd]
        self.exit_code = os.waitstatus_to_exitcode(status)
        os.close(self._lifeline)
        if self.secrets is not None:
            self.secrets.close()
        self.output.close()

    def _more(self, fd: int) -> bool:
        lines, take = self._pipes[fd]
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            data = b""
        for line in lines.feed(data) if data else lines.end():
            take(line)
        return bool(data)

    def view(self) -> dict[str, Any]:
        """What `list` says of it."""
        return {
            "host_id": self.id,
            "pid": self.pid,
            "launch": self.launch,
            "status": self.output.status,
            "exit_code": self.exit_code,
            "stderr": list(self.output.tail),
        }
