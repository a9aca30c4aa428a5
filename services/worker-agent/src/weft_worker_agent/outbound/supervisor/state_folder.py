"""A worker's state folder: locked by its supervisor, closed to others, with a place for the socket."""

import contextlib
import fcntl
import os
from types import TracebackType
from typing import Self

from weft_worker_agent.outbound.supervisor.control_socket import FRESH

MAX_SOCKET_PATH = 103
"""Bytes of a unix socket's path: 107 on Linux, 103 on macOS."""


class StateFolder:
    """The folder, while this supervisor holds it. Raises OSError with a sentence if another holds it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.logs = os.path.join(path, "logs")
        self._short: str | None = None
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        os.chmod(self.path, 0o700)
        os.makedirs(self.logs, mode=0o700, exist_ok=True)
        self._lock = os.open(os.path.join(path, "keeper.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            raise OSError(
                f"{path} is in use by another worker (process {holder}); stop that, or use another --state"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)

    @property
    def socket(self) -> str:
        """Where the supervisor listens: in the folder, or in a short temporary one if its path is too long."""
        path = os.path.join(self.path, "keeper.sock")
        if len(os.fsencode(path + FRESH)) <= MAX_SOCKET_PATH:
            return path
        if self._short is None:
            import tempfile  # rarely needed, and it brings much along

            self._short = tempfile.mkdtemp(prefix="weft-", dir="/tmp")
        return os.path.join(self._short, "keeper.sock")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._short is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self._short)
        os.close(self._lock)
