"""A clock that jumps while processes run: libfaketime under Python processes, which read how far it is off from a
file."""

from pathlib import Path

import libfaketime

_ANEW = """
import os, sys

if "LD_PRELOAD" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {OFF})
"""
"""A Python's `sitecustomize`: it starts anew under that clock, so that what it starts does so too."""


class JumpingClock:
    """One machine's clock. Every Python process with `folder` on its PYTHONPATH has it; monotonic clocks don't jump."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._file = folder / "off"
        self.jump(0)
        off = {
            "LD_PRELOAD": str(Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        (folder / "sitecustomize.py").write_text(_ANEW.replace("{OFF}", repr(off)))

    def jump(self, seconds: int) -> None:
        """It is so far off the true time from now on."""
        making = self._file.with_suffix(".new")
        making.write_text(f"{seconds:+d}\n")
        making.replace(self._file)
