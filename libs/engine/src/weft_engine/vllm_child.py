"""Ends vLLM's own processes with the engine host, whatever ends that.

vLLM's engine core and its workers go on for ever when the host is killed: measured, 0.32. vLLM loads its plugins in
each of its processes, so this is one (entry points in this package's pyproject.toml): the kernel then kills the
process when its parent ends. The host sets the variable below; without it nothing is done.

It stands beside `adapters` since each of vLLM's processes imports it: that package brings gRPC and pydantic's models,
0.3 s of CPU a process, or 1.1 s where Python keeps no bytecode.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Final

PARENT: Final = "WEFT_ENGINE_PARENT"
"""Names the process that vLLM's next processes must end with."""
PR_SET_PDEATHSIG: Final = 1
LOOK_S: Final = 1.0


def bind_children() -> None:
    """Let all processes that vLLM starts from here on end with this one."""
    os.environ[PARENT] = str(os.getpid())


def end_with_parent() -> None:
    """In a process of vLLM's: end when the parent does. In any other: do nothing. May be called again."""
    named = os.environ.get(PARENT, "")
    if not named.isdecimal() or int(named) == os.getpid():
        return
    parent = int(named)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_look_after, args=(parent,), name="parent", daemon=True).start()
    if os.getppid() != parent:  # it ended before
        os._exit(1)
    bind_children()


def _look_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)
