"""What the launcher maintains while its mesh runs: logs that grow, and a NATS server whose disk was full."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from weft_contracts.disk import KEPT_FREE

from weft_embedded import logs, prerequisites

_TIDY_S = 60.0
_LOOK_S = 2.0
_LOOKS = 15
"""A server whose disk was never seen full is asked at every so many looks."""


async def rotate_logs(paths: Callable[[], Iterable[Path]]) -> None:
    """Look after logs for ever."""
    while True:
        await asyncio.sleep(_TIDY_S)
        for each in list(paths()):
            with contextlib.suppress(OSError):  # on a full disk it grows no more anyway
                await asyncio.to_thread(logs.rotate, each)


async def restart_nats(
    folder: Path, fails: Callable[[], bool], renew: Callable[[], Awaitable[None]], *, look_s: float = _LOOK_S
) -> None:
    """Start the NATS server anew, for ever, when a write of it has failed and its disk has room again.

    It takes nothing more by itself then, and all that it acknowledged is on the disk.
    """
    look, was_full = 0, False
    while True:
        await asyncio.sleep(look_s)
        look += 1
        try:
            free = prerequisites.disk_free(folder)
        except OSError:
            continue
        if free < KEPT_FREE:
            was_full = True
        elif was_full or look % _LOOKS == 0:
            was_full = await asyncio.to_thread(fails)
            if was_full:
                await renew()
