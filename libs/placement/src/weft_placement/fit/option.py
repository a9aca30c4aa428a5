"""What fitting a node yields: devices with claims, or how far it missed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft_contracts.facts.values import DeviceClaim

from weft_placement.claim import GIB
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


@dataclass(frozen=True, slots=True)
class Miss:
    """The node can't hold it on this rung."""

    reason: str
    """Said of the node, without its own figures."""
    free: int = 0
    """Bytes that were there, on the devices that came nearest."""
    applies: bool = True
    """False where this rung is not for such a replica, whatever is free."""


def option_of(chosen: Iterable[tuple[DeviceMemory, int]]) -> Option:
    """The option that claims so many bytes on each of these devices."""
    pairs = sorted(chosen, key=lambda pair: pair[0].device_index)
    claimed = sum(claim for _, claim in pairs)
    free = sum(device.free for device, _ in pairs)
    devices = tuple(DeviceClaim(index=device.device_index, bytes=claim) for device, claim in pairs)
    return Option(devices, claimed / free if free else 1.0)


def with_host(demand: Demand, chosen: list[tuple[DeviceMemory, int]], host: DeviceMemory | None) -> Option | Miss:
    """The option that claims so much on these devices and, beside accelerators, what it needs of the machine's memory.

    `host`: the processor's; None: the node reports none, and nothing is counted on it.
    """
    accelerators = [(device, claim) for device, claim in chosen if device.vendor != "cpu"]
    needed = demand.need.beside(len(accelerators))
    if not needed or host is None:
        return option_of(chosen)
    shared = sum(claim for device, claim in accelerators if device.shared)
    if needed + shared > host.free:
        return Miss(f"has not {gib(needed + shared)} of the machine's memory free beside its devices", host.free)
    return replace(option_of(chosen), host=DeviceClaim(index=host.device_index, bytes=needed))


def in_order(demand: Demand, fitting: list[tuple[DeviceMemory, int]]) -> list[tuple[DeviceMemory, int]]:
    """The fullest device first where the strategy packs, the emptiest first where it spreads."""
    sign = 1 if demand.spec.strategy == "binpack" else -1
    return sorted(fitting, key=lambda pair: (sign * pair[0].free, pair[0].device_index))


def gib(size: int) -> str:
    """`5.91 GiB`."""
    return f"{size / GIB:.2f} GiB"
