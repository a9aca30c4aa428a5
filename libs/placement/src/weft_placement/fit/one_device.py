"""The first rung: the whole replica on one device, an accelerator or the processor."""

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.option import Miss, Option, gib, in_order, option_of

NAME = "one device"


def fit(devices: list[DeviceMemory], demand: Demand) -> Option | Miss:
    """The device that the strategy likes best among those that hold the replica."""
    if demand.devices is not None and demand.devices > 1:
        return Miss(f"must span {demand.devices} devices", applies=False)
    fitting: list[tuple[DeviceMemory, int]] = []
    most, needed, budgeted = 0, 0, False
    for device in devices:
        each = demand.need.on_each(device.vendor, 1)
        claim = demand.need.claim(device.total, device.free, each)
        if claim is not None:
            fitting.append((device, claim))
        else:
            most, needed, budgeted = max(most, device.free), max(needed, each), budgeted or device.budgeted
    if fitting:
        return option_of(in_order(demand, fitting)[:1])
    within = " within its VRAM budget" if budgeted else ""
    return Miss(f"has no device with {gib(needed)} free{share(demand)}{within}", most)


def share(demand: Demand) -> str:
    """What a fixed share of the device adds to the condition."""
    fraction = demand.need.fraction
    return "" if fraction is None else f" within {fraction:.0%} of it"
