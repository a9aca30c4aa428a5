"""Which files of a tree change, in batches: what is saved within a moment comes together."""

from collections.abc import AsyncGenerator
from pathlib import Path

from watchfiles import DefaultFilter, awatch

from weft_devtools.dev.affected import LOCKS
from weft_devtools.dev.members import FOLDERS

_QUIET_MS = 200
"""A batch ends when nothing changed for so long, as after a checkout or an editor that formats what it saved."""
_LONGEST_MS = 2000
_LOOK_MS = 1000


async def changes(root: Path) -> AsyncGenerator[frozenset[str]]:
    """Names of changed, new and removed files from the root on, batch by batch, until it is closed.

    Of the root's own files only the locks are looked at, once a second: beside them lie environments and states.
    """
    locks = _locks(root)
    watched = [root / name for name in FOLDERS]
    async for batch in awatch(
        *watched,
        watch_filter=DefaultFilter(),
        debounce=_LONGEST_MS,
        step=_QUIET_MS,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
    ):
        files = {Path(path).relative_to(root).as_posix() for _, path in batch}
        now = _locks(root)
        files |= {name for name in LOCKS if now[name] != locks[name]}
        locks = now
        if files:
            yield frozenset(files)


def _locks(root: Path) -> dict[str, bytes | None]:
    return {name: (root / name).read_bytes() if (root / name).is_file() else None for name in LOCKS}
