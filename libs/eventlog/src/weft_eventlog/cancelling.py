"""A cancellation must not get lost in a loop that runs for ever.

Python 3.11's `asyncio.wait_for`, which nats-py waits with, drops a cancellation that comes in the same turn of the
loop as the answer (https://github.com/python/cpython/issues/81839, mended in 3.12): one stop in fifteen hung.
"""

import asyncio


def end_if_cancelled() -> None:
    """Raise CancelledError where the current task was cancelled and an await has swallowed it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
