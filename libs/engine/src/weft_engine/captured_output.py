"""Captures what native code writes to stdout and stderr while it works, and lets it through all the same.

The words pass through a `tee` process, so they reach the real stderr even when native code aborts the process.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

TEE_ENDS_S: Final = 2.0
MAX_BYTES: Final = 256 * 1024


class CapturedOutput:
    """A context in which descriptors 1 and 2 are also written down; `lines` are known afterwards."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._kept: tuple[int, int] | None = None
        self._tee: subprocess.Popen[bytes] | None = None
        self._path: Path | None = None

    def __enter__(self) -> Self:
        try:
            descriptor, name = tempfile.mkstemp(prefix="weft-engine-words-")
            os.close(descriptor)
            self._path = Path(name)
            self._tee = subprocess.Popen(["tee", "-a", name], stdin=subprocess.PIPE, stdout=2)
        except OSError:
            return self  # nothing to listen with: the words still reach stderr
        assert self._tee.stdin is not None
        self._kept = os.dup(1), os.dup(2)
        os.dup2(self._tee.stdin.fileno(), 1)
        os.dup2(self._tee.stdin.fileno(), 2)
        self._tee.stdin.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept is not None:
            for kept, descriptor in zip(self._kept, (1, 2), strict=True):
                os.dup2(kept, descriptor)
                os.close(kept)
        if self._tee is not None:
            try:
                self._tee.wait(TEE_ENDS_S)
            except subprocess.TimeoutExpired:
                self._tee.kill()
                self._tee.wait()
        if self._path is not None:
            with self._path.open(encoding="utf-8", errors="replace") as file:
                self.lines = file.read(MAX_BYTES).splitlines()
            self._path.unlink(missing_ok=True)
