"""A service or worker as a process: with a lifeline to this one, a log of its own, a bounded end."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from weft_runtime import secret_pipe

from weft_embedded import logs

_AFTER_KILL_S = 5.0
"""What was killed is gone by then, or the kernel holds it: nobody waits for that."""
_JOIN_TOKEN_FD = "WEFT_JOIN_TOKEN_FD"
_OWN = ("WEFT_STATE", "WEFT_URL", "WEFT_LIFELINE_FD", "WEFT_POSTGRES_URL", "WEFT_JOIN_TOKEN", _JOIN_TOKEN_FD)


class Process(Protocol):
    """Something that runs and can be ended."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> int:
        """Its end; the exit status, 128 + number if a signal ended it."""
        ...

    async def stop(self, grace_s: float) -> int:
        """End it in an orderly way, by force after `grace_s` seconds; the exit status."""
        ...

    def kill(self) -> None:
        """End it by force, at once and without waiting for that."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. The process gets the lifeline's number in `WEFT_LIFELINE_FD` and must end when it closes."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: Path
    keep_fds: tuple[int, ...] = ()
    """Descriptors that the process inherits, such as the state's lock."""
    stop_signal: signal.Signals = signal.SIGTERM
    join_token: str = field(default="", repr=False)
    """What a worker joins with. It is handed over through a pipe, whose number it finds in `WEFT_JOIN_TOKEN_FD`."""


class ServiceProcess:
    """A started command."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int, stop_signal: signal.Signals) -> None:
        self._process = process
        self._lifeline = lifeline
        self._stop_signal = stop_signal

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        status = await self._process.wait()
        self._let_go()
        return status if status >= 0 else 128 - status

    async def stop(self, grace_s: float) -> int:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(self._stop_signal)
        try:
            return await asyncio.wait_for(self.wait(), grace_s)
        except TimeoutError:
            self.kill()
        try:
            return await asyncio.wait_for(self.wait(), _AFTER_KILL_S)
        except TimeoutError:
            return 128 + signal.SIGKILL

    def kill(self) -> None:
        # Its whole group: what it started and did not set apart must not outlive it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _let_go(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


async def start(command: Command) -> ServiceProcess:
    """Start a command in a session of its own, so that Ctrl-C reaches only this process.

    Raises:
        OSError: the program or the log can't be opened.
    """
    lifeline, own_end = os.pipe()
    token = secret_pipe.give(command.join_token.encode()) if command.join_token else -1
    handed = {_JOIN_TOKEN_FD: str(token)} if token >= 0 else {}
    try:
        log = logs.open_for_append(command.log)
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**command.env, **handed, "WEFT_LIFELINE_FD": str(lifeline)},
                pass_fds=(lifeline, *command.keep_fds, *((token,) if token >= 0 else ())),
                start_new_session=True,
            )
        finally:
            os.close(log)
    except BaseException:
        os.close(own_end)
        raise
    finally:
        os.close(lifeline)
        if token >= 0:
            os.close(token)
    return ServiceProcess(process, own_end, command.stop_signal)


def environment(**settings: str) -> dict[str, str]:
    """This process's environment with a part's own settings on top.

    What names this launcher's own state or address would mean something else to a part, and is left out; so are the
    database's password and a registration token, which are for one of them alone.
    """
    kept = {k: v for k, v in os.environ.items() if k not in _OWN}
    return {**kept, **settings}
