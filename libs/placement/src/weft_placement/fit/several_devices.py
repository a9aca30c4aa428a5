"""The second rung: a tensor-parallel replica over several devices of one node, all of one vendor."""

from weft_contracts.facts.values import Vendor, Weights

from weft_placement.demand import Demand
from weft_placement.fit.option import Miss, Option, gib, in_order, option_of
from weft_placement.room import Room

NAME = "several devices of one node"
SPLITTING_ENGINES = frozenset({"vllm"})


def fit(rooms: list[Room], demand: Demand) -> Option | Miss:
    """The fewest devices that the model's heads divide by and that hold it."""
    engine, weights = demand.spec.engine, demand.spec.weights
    if engine not in SPLITTING_ENGINES:
        return Miss(f"can't split it: {engine} runs on one device", applies=False)
    if weights.heads <= 0:
        return Miss("can't split it: the header names no attention heads", applies=False)
    vendors = sorted({room.vendor for room in rooms})
    most = max((sum(room.free for room in rooms if room.vendor == vendor) for vendor in vendors), default=0)
    sizes = [demand.devices] if demand.devices is not None else range(2, len(rooms) + 1)
    for size in sizes:
        if not divides(weights, size):
            continue
        for vendor in vendors:
            fitting = _fitting([room for room in rooms if room.vendor == vendor], demand, size)
            if len(fitting) >= size:
                return option_of(in_order(demand, fitting)[:size])
    if demand.devices is not None and not divides(weights, demand.devices):
        return Miss(f"can't split it: {weights.heads} heads do not divide by {demand.devices}")
    within = " within its VRAM budget" if any(room.budgeted for room in rooms) else ""
    return Miss(_reason(rooms, demand, len(vendors)) + within, most)


def divides(weights: Weights, size: int) -> bool:
    """Whether a model splits into `size` tensor-parallel parts.

    Attention and vision heads divide by it; KV heads divide by it, or it by them (then they are copied).
    """
    kv_heads = weights.kv_heads or weights.heads
    return (
        weights.heads % size == 0
        and weights.vision_heads % size == 0
        and (kv_heads % size == 0 or size % kv_heads == 0)
    )


def _fitting(rooms: list[Room], demand: Demand, size: int) -> list[tuple[Room, int]]:
    found: list[tuple[Room, int]] = []
    for room in rooms:
        claim = demand.need.claim(room.total, room.free, demand.need.on_each(room.vendor, size))
        if claim is not None:
            found.append((room, claim))
    return found


def _reason(rooms: list[Room], demand: Demand, vendors: int) -> str:
    size = demand.devices
    if size is not None and vendors > 1 and len(rooms) >= size:
        return f"has not {size} fitting devices of one vendor: mixed vendors make no replica"
    if size is not None:
        return f"has not {size} devices with {gib(demand.need.on_each(_vendor(rooms), size))} free each"
    total = demand.need.weights + demand.need.kv
    return f"has not {gib(total)} free on devices of one vendor that its heads divide by"


def _vendor(rooms: list[Room]) -> Vendor:
    return rooms[0].vendor if rooms else "nvidia"
