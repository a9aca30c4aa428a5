"""Steps on a disk that either happened or did not."""

import contextlib
import errno
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

from weft_files.faults import NoRoom

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def naming_a_full_disk(folder: Path) -> Generator[None]:
    """Raises NoRoom where the disk was full."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise NoRoom(f"the disk under {folder} is full: {free(folder)} bytes are free") from None


def free(folder: Path) -> int:
    """Bytes that we may still write there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_whole(path: Path, content: bytes) -> None:
    """The file under its name at once, or not at all; over what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with naming_a_full_disk(path.parent), aside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    sync_folder(path.parent)
