"""What fitting a node yields: devices with claims, or how far it missed."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from weft_contracts.facts.values import DeviceClaim

from weft_placement.claim import GIB, Need
from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory


@dataclass(frozen=True, slots=True)
class Option:
    """Devices of a node that can hold a replica."""

    devices: tuple[DeviceClaim, ...]
    part: float
    """The share that the claim takes of what was free on these devices, 0..1."""
    host: DeviceClaim | None = None
    """What it claims of the machine's memory beside accelerators."""
    filled: float = 0.0
    """What `filling` says of the fullest of these devices, 0..1."""
    of_whole: float = 0.0
    """The share that the claim takes of a device's whole memory, the largest of them, 0..1."""
    layers: int | None = None
    """How many of its layers lie on the accelerator, where placement chose that."""


@dataclass(frozen=True, slots=True)
class Miss:
    """The node can't hold it on this rung."""

    reason: str
    """Said of the node, without its own figures."""
    free: int = 0
    """Bytes that were there, on the devices that came nearest."""
    applies: bool = True
    """False where this rung is not for such a replica, whatever is free."""


@functools.lru_cache(maxsize=256)
def miss(reason: str, *, applies: bool) -> Miss:
    """One that is the same for many nodes, and so is made once."""
    return Miss(reason, applies=applies)


def option_of(
    chosen: Iterable[tuple[DeviceMemory, int]],
    host: DeviceClaim | None = None,
    host_free: int = 0,
    layers: int | None = None,
) -> Option:
    """The option that claims so many bytes on each of these devices, and so much of the machine's memory beside."""
    pairs = sorted(chosen)
    claimed = sum(claim for _, claim in pairs)
    free = sum(device.free for device, _ in pairs)
    devices = tuple(DeviceClaim(index=device.device_index, bytes=claim) for device, claim in pairs)
    memory = part_of(host.bytes, host_free) if host is not None else 0.0
    return Option(
        devices,
        part_of(claimed, free),
        host,
        filled=max(filling(device, claim, memory) for device, claim in pairs),
        of_whole=max(part_of(claim, device.total) for device, claim in pairs),
        layers=layers,
    )


def filling(device: DeviceMemory, claim: int, memory: float) -> float:
    """How much of what is free a claim takes: (memory part + 2 × device part) / 3, since memory of accelerators is the
    scarcer; on a processor its part of the machine's memory alone. 0..1.

    `memory`: the part of the machine's free memory that is claimed beside accelerators.
    """
    part = part_of(claim, device.free)
    return part if device.vendor == "cpu" else (memory + 2 * part) / 3


def part_of(claim: int, of: int) -> float:
    """The share that a claim takes; 1 of nothing."""
    return claim / of if of else 1.0


def with_host(
    chosen: list[tuple[DeviceMemory, int]], need: Need, host: DeviceMemory | None, layers: int | None = None
) -> Option | Miss:
    """The option that claims so much on these devices and, beside accelerators, what it needs of the machine's memory.

    `host`: the processor's; None: the node reports none, and nothing is counted on it.
    """
    accelerators = [(device, claim) for device, claim in chosen if device.vendor != "cpu"]
    needed = need.beside(len(accelerators))
    shared = [(device, claim) for device, claim in accelerators if device.shared]
    if len(shared) > 1 or (needed and host is not None):
        room = host.free if host is not None else max(device.free for device, _ in shared)
        together = sum(claim for _, claim in shared) + (needed if host is not None else 0)
        if together > room:
            return Miss(f"has not {gib(together)} of the machine's memory free beside its devices", room)
    if not needed or host is None:
        return option_of(chosen, layers=layers)
    return option_of(chosen, DeviceClaim(index=host.device_index, bytes=needed), host.free, layers)


def in_order(demand: Demand, fitting: list[tuple[DeviceMemory, int]]) -> list[tuple[DeviceMemory, int]]:
    """Devices without a replica of the model first, where those keep apart; then the fullest where the policy fills
    what is begun, the emptiest where it spreads."""
    sign = 1 if demand.fills else -1
    return sorted(fitting, key=lambda pair: (pair[0].beside, sign * pair[0].free, pair[0].device_index))


def gib(size: int) -> str:
    """`5.91 GiB`."""
    return f"{size / GIB:.2f} GiB"
