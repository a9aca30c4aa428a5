"""The second rung: a replica over several accelerators of one node, all of one vendor."""

from collections.abc import Iterator

from weft_contracts.facts.values import Vendor, Weights

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.option import Miss, Option, gib, in_order, miss, with_host

NAME = "several devices of one node"


def fit(devices: list[DeviceMemory], demand: Demand, host: DeviceMemory | None = None) -> Option | Miss:
    """The fewest devices that the model's heads divide by and that hold it; of devices that were chosen by hand, as
    many as were asked for, however the engine shares its heads out over them.

    `host`: the processor's memory, for what it needs beside accelerators; None: it isn't counted.
    """
    if (why := ruled_out(demand)) is not None:
        return miss(why, applies=False)
    accelerators = [device for device in devices if device.vendor != "cpu"]
    if not accelerators and demand.spans == 1:
        return miss(f"has no accelerators that its {demand.profile.name} backend can use", applies=False)
    if is_headless(demand) and len(accelerators) < 2 and demand.spans == 1:
        return miss("has no two accelerators", applies=False)
    vendors = sorted({device.vendor for device in accelerators})
    most = max((sum(d.free for d in accelerators if d.vendor == vendor) for vendor in vendors), default=0)
    missed: Miss | None = None
    for tensor, stages in layouts(demand, len(accelerators)):
        for vendor in vendors:
            own = [device for device in accelerators if device.vendor == vendor]
            fitting = fitting_for(own, demand, tensor, stages)
            if len(fitting) >= tensor * stages:
                option = with_host(in_order(demand, fitting)[: tensor * stages], demand.need, host)
                if isinstance(option, Option):
                    return option
                missed = missed or option
    if missed is not None:
        return missed
    if demand.devices is not None and not demand.by_hand and not splits_by(demand, demand.devices):
        return Miss(f"can't split it: {demand.spec.weights.heads} heads do not divide by {demand.devices}")
    within = " within its VRAM budget" if any(device.budgeted for device in accelerators) else ""
    return Miss(_reason(accelerators, demand, len(vendors)) + within, most)


def ruled_out(demand: Demand) -> str | None:
    """Why this is no rung for such a replica, whatever the node; None: it is one."""
    if (why := cannot_split(demand)) is not None:
        return why
    return "must lie on one device" if demand.devices == 1 and demand.spans == 1 else None


def cannot_split(demand: Demand) -> str | None:
    """Why a replica can't lie on several devices, wherever those are; None: it can."""
    if "devices" not in demand.profile.splits:
        return f"can't split it: {demand.profile.name} runs on one device"
    unknown = demand.spec.weights.heads <= 0 and not is_headless(demand)
    if unknown and not demand.by_hand and demand.stages is None:
        return "can't split it: the header names no attention heads"
    return None


def is_headless(demand: Demand) -> bool:
    """Whether it has no files, and so no heads that a number of devices would have to divide."""
    return not demand.profile.formats and demand.spec.weights.heads <= 0


def layouts(demand: Demand, most: int) -> Iterator[tuple[int, int]]:
    """The ways to lie on two to `most` devices of one node, the fewest first: tensor-parallel size, pipeline stages."""
    stages = demand.stages or 1
    most = most if demand.wished is None or demand.by_hand else min(most, demand.wished)
    sizes = [demand.devices] if demand.devices is not None else range(1, most // stages + 1)
    for tensor in sizes:
        if 2 <= tensor * stages <= most and (demand.by_hand or splits_by(demand, tensor)):
            yield tensor, stages


def splits_by(demand: Demand, size: int) -> bool:
    """Whether a replica splits into `size` tensor-parallel parts."""
    weights = demand.spec.weights
    if is_headless(demand):
        return True
    return size == 1 or (weights.heads > 0 and divides(weights, size, demand.vocabulary))


def divides(weights: Weights, size: int, vocabulary: int = 0) -> bool:
    """Whether a model splits into `size` tensor-parallel parts.

    Attention heads, vision heads and the vocabulary divide by it; KV heads divide by it, or it by them (then they are
    copied). What isn't known of vision and vocabulary is 0.
    """
    kv_heads = weights.kv_heads or weights.heads
    return (
        weights.heads % size == 0
        and weights.vision_heads % size == 0
        and vocabulary % size == 0
        and (kv_heads % size == 0 or size % kv_heads == 0)
    )


def fitting_for(
    devices: list[DeviceMemory], demand: Demand, tensor: int, stages: int
) -> list[tuple[DeviceMemory, int]]:
    """The devices that hold their part in such a layout, each with what it claims."""
    found: list[tuple[DeviceMemory, int]] = []
    for device in devices:
        each = demand.need.on_each(device.vendor, tensor, stages)
        claim = demand.need.claim(device.total, device.free, each)
        if claim is not None:
            found.append((device, claim))
    return found


def _reason(devices: list[DeviceMemory], demand: Demand, vendors: int) -> str:
    size = demand.spans
    if size > 1 and vendors > 1 and len(devices) >= size:
        return f"has not {size} fitting devices of one vendor: mixed vendors make no replica"
    if size > 1 and demand.devices is not None:
        each = demand.need.on_each(_vendor(devices), demand.devices, demand.stages or 1)
        return f"has not {size} devices with {gib(each)} free each"
    total = demand.need.bytes
    by_heads = "" if is_headless(demand) else " that its heads divide by"
    return f"has not {gib(total)} free on devices of one vendor{by_heads}"


def _vendor(devices: list[DeviceMemory]) -> Vendor:
    return devices[0].vendor if devices else "nvidia"
