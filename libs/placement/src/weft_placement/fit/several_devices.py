"""The second rung: a tensor-parallel replica over several devices of one node, all of one vendor."""

from weft_contracts.facts.values import Vendor, Weights

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.option import Miss, Option, gib, in_order, with_host

NAME = "several devices of one node"


def fit(devices: list[DeviceMemory], demand: Demand, host: DeviceMemory | None = None) -> Option | Miss:
    """The fewest devices that the model's heads divide by and that hold it.

    `host`: the processor's memory, for what it needs beside accelerators; None: it isn't counted.
    """
    engine, weights = demand.profile, demand.spec.weights
    if "devices" not in engine.splits:
        return Miss(f"can't split it: {engine.name} runs on one device", applies=False)
    if weights.heads <= 0:
        return Miss("can't split it: the header names no attention heads", applies=False)
    vendors = sorted({device.vendor for device in devices})
    most = max((sum(device.free for device in devices if device.vendor == vendor) for vendor in vendors), default=0)
    missed: Miss | None = None
    sizes = [demand.devices] if demand.devices is not None else range(2, len(devices) + 1)
    for size in sizes:
        if not divides(weights, size):
            continue
        for vendor in vendors:
            fitting = _fitting([device for device in devices if device.vendor == vendor], demand, size)
            if len(fitting) >= size:
                option = with_host(demand, in_order(demand, fitting)[:size], host)
                if isinstance(option, Option):
                    return option
                missed = missed or option
    if missed is not None:
        return missed
    if demand.devices is not None and not divides(weights, demand.devices):
        return Miss(f"can't split it: {weights.heads} heads do not divide by {demand.devices}")
    within = " within its VRAM budget" if any(device.budgeted for device in devices) else ""
    return Miss(_reason(devices, demand, len(vendors)) + within, most)


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


def _fitting(devices: list[DeviceMemory], demand: Demand, size: int) -> list[tuple[DeviceMemory, int]]:
    found: list[tuple[DeviceMemory, int]] = []
    for device in devices:
        claim = demand.need.claim(device.total, device.free, demand.need.on_each(device.vendor, size))
        if claim is not None:
            found.append((device, claim))
    return found


def _reason(devices: list[DeviceMemory], demand: Demand, vendors: int) -> str:
    size = demand.devices
    if size is not None and vendors > 1 and len(devices) >= size:
        return f"has not {size} fitting devices of one vendor: mixed vendors make no replica"
    if size is not None:
        return f"has not {size} devices with {gib(demand.need.on_each(_vendor(devices), size))} free each"
    total = demand.need.weights + demand.need.kv
    return f"has not {gib(total)} free on devices of one vendor that its heads divide by"


def _vendor(devices: list[DeviceMemory]) -> Vendor:
    return devices[0].vendor if devices else "nvidia"
