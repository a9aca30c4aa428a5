"""Files of the state folder that only their owner may read, written whole or not at all."""

import os
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Replace the file's content; it has mode 600 from its first byte on. Raises OSError."""
    fresh = path.with_name(f"{path.name}.new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.fchmod(fd, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def read(path: Path) -> bytes | None:
    """The file's content; None if there is none. Raises OSError for one that can't be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
