"""The pipe by which one host is told secrets: the first at its start, others while it runs.

What its host has not read yet is kept here, and nothing else: neither a file nor a list nor a log has it.
"""

import os

MOST_WAITING = 1 << 20
"""Bytes that may wait for a host that doesn't read."""


class PipeFull(Exception):
    """The host reads nothing of what it was told; the message is a sentence."""


class SecretPipe:
    """The supervisor's end of one host's pipe."""

    def __init__(self, first: bytes) -> None:
        self.reading, self.writing = os.pipe()
        """Descriptors; `writing` is -1 once the host has closed its end, or has ended."""
        os.set_blocking(self.writing, False)
        self._waiting = bytearray(first)

    def started(self) -> None:
        """The host has its end: ours of it is closed, and what waits is written."""
        os.close(self.reading)
        self.flush()

    @property
    def waits(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._waiting) and self.writing >= 0

    def tell(self, lines: bytes) -> None:
        """Write more. Raises PipeFull."""
        if len(self._waiting) + len(lines) > MOST_WAITING:
            raise PipeFull("the host reads no secrets")
        self._waiting += lines
        self.flush()

    def flush(self) -> None:
        """Write what the pipe takes now."""
        try:
            while self.waits:
                del self._waiting[: os.write(self.writing, self._waiting)]
        except BlockingIOError:
            pass
        except OSError:  # the host reads no more
            self.close()

    def close(self) -> None:
        """Nothing more is told."""
        self._waiting.clear()
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1
