"""What engine hosts hold of AMD's and Intel's devices, by the kernel's own files: no tool of a vendor is needed."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from weft_worker_agent.domain.drm_clients import DrmClient, client_of, held_by

_DEVICES = "/dev/dri/"
_MOST_FILES = 16_384
"""Open files that one look goes through, of all processes."""
_MOST_BYTES = 16 << 10
"""Of one description: real ones have two KiB."""


class _TooMany(Exception):
    """More files are open than one look goes through."""


def held_on_devices(trees: Mapping[int, Iterable[int]], root: Path = Path("/")) -> dict[str, dict[int, int | None]]:
    """Bytes that hosts hold of each device's own memory, by its PCI address and by host; None: it isn't known.

    `trees`: each host's process and all that it started. A host that has opened no device of these vendors is not
    in it. A process whose files may not be read, and more open files than a look goes through, leave its host out.
    """
    left = iter(range(_MOST_FILES))
    found: dict[str, dict[int, int | None]] = {}
    for host, pids in trees.items():
        try:
            held = held_by([client for pid in pids for client in _clients(root / "proc" / str(pid), left)])
        except (PermissionError, _TooMany):
            continue
        for address, size in held.items():
            found.setdefault(address, {})[host] = size
    return found


def card_memory(address: str, root: Path = Path("/")) -> tuple[int, int] | None:
    """All memory of AMD's card at a PCI address and what is used of it, in bytes; None: its driver doesn't say."""
    device = root / "sys/bus/pci/devices" / address
    with contextlib.suppress(OSError, ValueError):
        return int((device / "mem_info_vram_total").read_text()), int((device / "mem_info_vram_used").read_text())
    return None


def _clients(process: Path, left: Iterator[int]) -> Iterator[DrmClient]:
    """Of one process; nothing of one that has ended. Raises PermissionError, _TooMany."""
    try:
        names = os.listdir(process / "fd")
    except (FileNotFoundError, ProcessLookupError):
        return
    for name in names:
        if next(left, None) is None:
            raise _TooMany
        try:
            if not os.readlink(process / "fd" / name).startswith(_DEVICES):
                continue
            with (process / "fdinfo" / name).open(encoding="ascii", errors="replace") as file:
                client = client_of(file.read(_MOST_BYTES))
        except (FileNotFoundError, ProcessLookupError):
            continue  # closed meanwhile
        if client is not None:
            yield client
