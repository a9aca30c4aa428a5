"""What a service runs side by side, and how that ends: in order, each part bounded.

Root tasks have names; the first to end ends the service, and a quiet end is worth a word.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from weft_runtime.logs import get_logger

_CANCEL_AGAIN = 3.0
_log: Any = get_logger("weft.service")

Stop = Callable[[], Awaitable[None]]


class RootTasks:
    """By name, with what is to be called before they are cancelled."""

    def __init__(self) -> None:
        self._roots: dict[str, asyncio.Task[None]] = {}
        self._stops: list[tuple[str, Stop, float]] = []

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        """Run a root task: its end, however it comes, ends the service."""
        self.adopt(asyncio.create_task(work, name=name))

    def adopt(self, task: "asyncio.Task[None]") -> None:
        """Let a task that runs already be one of them, by its own name."""
        self._roots[task.get_name()] = task

    def on_stop(self, name: str, stop: Stop, timeout: float = 5.0) -> None:
        """Call `stop` when the service ends, last registered first, for at most `timeout` seconds."""
        self._stops.append((name, stop, timeout))

    async def first_end(self) -> int:
        """Wait for the first root task to end; the exit status is 0 only where it was asked to stop."""
        done, _ = await asyncio.wait(self._roots.values(), return_when=asyncio.FIRST_COMPLETED)
        status = 0
        for task in done:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                _log.error("root task failed", task=task.get_name(), exc_info=error)
                status = 1
            elif task.get_name() not in ("signals", "lifeline"):
                _log.error("root task ended", task=task.get_name())
                status = 1
            else:
                _log.info("stops", asked_by=task.get_name())
        return status

    async def end_all(self) -> None:
        """What registered for it, last first; then the root tasks."""
        for name, stop, timeout in reversed(self._stops):
            try:
                await asyncio.wait_for(stop(), timeout)
            except Exception as error:
                _log.warning("did not stop in order", part=name, error=repr(error))
        left = set(self._roots.values())
        for _ in range(2):  # a cancellation can get lost, see weft_eventlog.cancelling
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN)
            if not left:
                break
        else:
            _log.warning("did not end", tasks=[task.get_name() for task in left])
