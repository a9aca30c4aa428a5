"""Looks now and then what is free on the disks, so that what waits for room is placed once there is some."""

import asyncio
from collections.abc import Callable

LOOK_S = 60.0
WAITED_FOR_S = 2.0
"""While something could not be installed for want of room."""


async def watch_disks(look: Callable[[], None], waited_for: Callable[[], bool]) -> None:
    """Look for ever, more often while room is waited for. What has moved by less than a tenth makes no report."""
    since = 0.0
    while True:
        await asyncio.sleep(WAITED_FOR_S)
        since += WAITED_FOR_S
        if since >= LOOK_S or waited_for():
            since = 0.0
            look()
