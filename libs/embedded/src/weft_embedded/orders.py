"""What whoever holds a launcher's lifeline tells it through that pipe: lines, each an order for one part.

anew PART          it is ended in order and started again at once
anew-agent PART    a worker's agent is started again; its engine hosts go on
"""

import asyncio
import os
from collections.abc import Callable

ANEW = "anew"
ANEW_AGENT = "anew-agent"
_PIECE = 4096
_LONGEST = 200
"""Of a line: two words, and a part's name is short."""


def order(word: str, part: str) -> bytes:
    """One line for the pipe."""
    return f"{word} {part}\n".encode()


def follow(pipe: int, obey: Callable[[str, str], None], end: Callable[[], None]) -> None:
    """Call `obey` with word and part of each line, for as long as the running loop does; `end` when the pipe closes."""
    loop = asyncio.get_running_loop()
    begun = b""

    def readable() -> None:
        nonlocal begun
        data = os.read(pipe, _PIECE)
        if not data:
            loop.remove_reader(pipe)
            end()
            return
        *lines, begun = (begun + data).split(b"\n")
        begun = begun[-_LONGEST:]
        for line in lines:
            word, _, part = line.decode(errors="replace").partition(" ")
            obey(word, part)

    loop.add_reader(pipe, readable)
