"""Looks now and then what is free on the disks, so that what waits for room is placed once there is some."""

import asyncio
from collections.abc import Callable

LOOK_S = 60.0


async def watch_disks(look: Callable[[], None], every_s: float = LOOK_S) -> None:
    """Look for ever. What has moved by less than a tenth makes no report."""
    while True:
        await asyncio.sleep(every_s)
        look()
