"""The launcher's end, seen through a pipe: it closes when its other end does, however that process died."""

import asyncio
import os


async def lifeline_closed(fd: int) -> None:
    """Return when the pipe `fd` is closed at its other end. Takes the descriptor over."""
    loop = asyncio.get_running_loop()
    closed = loop.create_future()

    def readable() -> None:
        try:
            if os.read(fd, 4096):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        if not closed.done():
            closed.set_result(None)

    os.set_blocking(fd, False)
    loop.add_reader(fd, readable)
    try:
        await closed
    finally:
        loop.remove_reader(fd)
