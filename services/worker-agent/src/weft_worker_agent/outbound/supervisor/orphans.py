"""Processes that an engine host started and that outlive it: found, and ended.

Most end with their host's process group. One that made a session of its own doesn't; but its parent's end hands it to
the supervisor, which asked for that (Linux), and the variable that its host was started with names the host. Such a
one of a host that lives is left alone: it may have been meant to go its own way.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Collection

MARK = "WEFT_HOST"
"""The variable that names the host, in the environment of all that it starts."""
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of what children leave behind. Linux only: elsewhere it is the system's first process."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def orphans(living: Collection[str], known: Collection[int]) -> list[int]:
    """This process's children, but those that are `known`, that a host which is not among the living ones left."""
    return [pid for pid in _children() if pid not in known and _host_of(pid) not in (None, *living)]


def end(pids: Collection[int]) -> None:
    """KILL them, each with its group: nobody speaks to them any more."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGKILL)


def _children() -> list[int]:
    """Of this process, those that still run. Looks through all processes, which takes some milliseconds."""
    own, found = os.getpid(), list[int]()
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                    if int(parent) == own and state != b"Z":
                        found.append(int(name))
    return found


def _host_of(pid: int) -> str | None:
    """Which host started it; None for what none did, or what cleaned its environment."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        for entry in file.read(1 << 20).split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == MARK.encode():
                return value.decode(errors="replace")
    return None
