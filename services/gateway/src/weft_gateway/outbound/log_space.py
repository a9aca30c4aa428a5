"""Whether the log takes new commits, as far as this gateway can see: by its server's disk, where that is this
machine's, and by what the server last refused.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from weft_contracts import disk


class LogSpace:
    """Asked at each look at the status: one call to the file system, a few microseconds."""

    def __init__(self, store: Path | None, position: Callable[[], int]) -> None:
        """`position`: of the log as far as it is folded. A refusal is over when the log has grown since."""
        self._store = store
        self._position = position
        self._refused: tuple[int, str] | None = None

    def refused(self, why: str) -> None:
        """Note that the log refused a commit for want of room."""
        self._refused = (self._position(), why)

    def disk_full(self) -> str | None:
        """One sentence where the server's disk is seen to be full."""
        if self._store is None:
            return None
        try:
            return disk.log_full(self._store, shutil.disk_usage(self._store).free)
        except OSError:
            return None  # a disk that can't be looked at is not reported

    def problem(self) -> str | None:
        """One sentence where nothing can change for want of room, else None."""
        if (full := self.disk_full()) is not None:
            return full
        if self._refused is None:
            return None
        position, why = self._refused
        if self._position() > position:
            self._refused = None
            return None
        return why
