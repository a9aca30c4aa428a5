"""A secret for a process that is about to start: through a pipe, so that it stands in no environment and no file.

A process's environment can be read by all of its user's processes while it lives, and is inherited by what it starts.
Needs the standard library alone: a worker's supervisor imports next to nothing.
"""

import os

MOST_BYTES = 4096
"""What the smallest pipe holds: so much is written before anybody reads."""


def give(secret: bytes) -> int:
    """A descriptor from which the secret can be read once; inheritable, to be closed here when the other has it.

    Raises ValueError for one that is too long.
    """
    if len(secret) > MOST_BYTES:
        raise ValueError(f"it has {len(secret)} bytes, and may have {MOST_BYTES}")
    reading, writing = os.pipe()
    try:
        os.write(writing, secret)
    finally:
        os.close(writing)
    os.set_inheritable(reading, True)
    return reading


def take(descriptor: int) -> bytes:
    """The secret behind a descriptor, which is closed. Raises OSError where there is none."""
    with os.fdopen(descriptor, "rb") as given:
        return given.read(MOST_BYTES)
