"""What fitting a node yields: devices with claims, or how far it missed."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft_contracts.facts.values import DeviceClaim

from weft_placement.claim import GIB
from weft_placement.demand import Demand
from weft_placement.room import Room


@dataclass(frozen=True, slots=True)
class Option:
    """Devices of a node that can hold a replica."""

    devices: tuple[DeviceClaim, ...]
    part: float
    """Of what was free on these devices, the share that the claim takes: 0..1."""


@dataclass(frozen=True, slots=True)
class Miss:
    """The node can't hold it on this rung."""

    reason: str
    """Said of the node, without its own figures."""
    free: int = 0
    """Bytes that were there, on the devices that came nearest."""
    applies: bool = True
    """False where this rung is not for such a replica, whatever is free."""


def option_of(chosen: Iterable[tuple[Room, int]]) -> Option:
    """The option that claims so many bytes on each of these devices."""
    pairs = sorted(chosen, key=lambda pair: pair[0].device)
    claimed = sum(claim for _, claim in pairs)
    free = sum(room.free for room, _ in pairs)
    devices = tuple(DeviceClaim(index=room.device, bytes=claim) for room, claim in pairs)
    return Option(devices, claimed / free if free else 1.0)


def in_order(demand: Demand, fitting: list[tuple[Room, int]]) -> list[tuple[Room, int]]:
    """The fullest device first where the strategy packs, the emptiest first where it spreads."""
    sign = 1 if demand.spec.strategy == "binpack" else -1
    return sorted(fitting, key=lambda pair: (sign * pair[0].free, pair[0].device))


def gib(size: int) -> str:
    """`5.91 GiB`."""
    return f"{size / GIB:.2f} GiB"
