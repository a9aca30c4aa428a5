"""What the kernel says of a process's open graphics devices: who holds how much of which card's own memory.

Form: the kernel's `Documentation/gpu/drm-usage-stats.rst`, one `key: value` a line, sizes in bytes, KiB or MiB.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft_worker_agent.domain.pci import pci_address

_DRIVERS = frozenset({"amdgpu", "i915", "xe"})
_FIGURE = re.compile(r"drm-(resident|memory|total)-((?:stolen-)?local\d*|vram\d*)")
"""Regions of a card's own memory: `vram` of amdgpu, `vram0` for a tile of xe, `local0` and `stolen-local0` of i915."""
_SIZE = re.compile(r"(\d{1,18})\s*(KiB|MiB|GiB)?")
_UNITS = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MOST_TELLING = ("resident", "memory", "total")
"""What lies there now, before what was asked for. `memory` is amdgpu's older name of the first."""


@dataclass(frozen=True, slots=True)
class DrmClient:
    """One opening of a device. Descriptors that were doubled or handed on show the same one."""

    address: str
    """Of the device: `0000:03:00.0`."""
    id: str
    """Unique for a device; empty: this kernel doesn't say."""
    bytes: int | None
    """Of the device's own memory; None: its driver doesn't say."""


def client_of(text: str) -> DrmClient | None:
    """What one file of `/proc/PID/fdinfo` tells; None: it is of no device of AMD's or Intel's."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields[key.strip()] = value.strip()
    address = pci_address(fields.get("drm-pdev"))
    if fields.get("drm-driver") not in _DRIVERS or not address:
        return None
    return DrmClient(address, fields.get("drm-client-id", ""), _own_memory(fields))


def held_by(clients: Iterable[DrmClient]) -> dict[str, int | None]:
    """Bytes that clients hold together, by device; None: of one of them it isn't known. Each client counts once.

    Those without an id can't be told apart: of a device, the largest of them counts.
    """
    once: dict[tuple[str, str], int | None] = {}
    for client in clients:
        key = client.address, client.id
        if key not in once:
            once[key] = client.bytes
        elif (before := once[key]) is not None:
            once[key] = None if client.bytes is None else max(before, client.bytes)
    found: dict[str, int | None] = {}
    for (address, _), size in once.items():
        before = found.get(address, 0)
        found[address] = None if before is None or size is None else before + size
    return found


def _own_memory(fields: Mapping[str, str]) -> int | None:
    regions: dict[str, dict[str, int]] = {}
    for key, value in fields.items():
        figure, size = _FIGURE.fullmatch(key), _SIZE.fullmatch(value)
        if figure is not None and size is not None:
            regions.setdefault(figure[2], {})[figure[1]] = int(size[1]) * _UNITS[size[2]]
    if not regions:
        return None
    return sum(next(said[kind] for kind in _MOST_TELLING if kind in said) for said in regions.values())
