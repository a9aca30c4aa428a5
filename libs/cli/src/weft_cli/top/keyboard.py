"""Single keys from a terminal, without Enter."""

import os
import select
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

ENDS = frozenset("qQ\x04")
"""q, and Ctrl-D. Ctrl-C ends it as it ends every command."""


@contextmanager
def keys() -> Generator[None]:
    """While inside, keys come one by one and are not shown. Without a terminal on stdin nothing is changed."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def ended_within(seconds: float) -> bool:
    """Whether a key that ends it is pressed within so many seconds; others are passed over."""
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin], [], [], left)
        if ready:
            pressed = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
            if not pressed or ENDS & set(pressed):
                return True
    return False
