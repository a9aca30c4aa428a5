"""Runs one blocking call on a thread of its own, so that a stuck one never keeps the process from ending."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def on_own_thread(call: Callable[[], T], name: str, *, stays: bool = False) -> T:
    """Await a blocking call. When the waiting is cancelled the call runs on and its result is dropped.

    `stays`: the thread lives on after the call, for what is bound to the thread that made it.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def deliver(value: T | None, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]  # T may be None itself

    def run() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = call()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop may be gone already
            loop.call_soon_threadsafe(deliver, value, error)
        if stays:
            threading.Event().wait()

    threading.Thread(target=run, name=name, daemon=True).start()
    return await result
