"""The first rung: the whole replica on one device, an accelerator or the processor."""

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.option import Miss, Option, gib, in_order, with_host

NAME = "one device"


def fit(devices: list[DeviceMemory], demand: Demand, host: DeviceMemory | None = None) -> Option | Miss:
    """The device that the strategy likes best among those that hold the replica, or its part for an accelerator.

    `host`: the processor's memory, for what it needs beside an accelerator; None: it isn't counted.
    """
    if demand.devices is not None and demand.devices > 1:
        return Miss(f"must span {demand.devices} devices", applies=False)
    fitting: list[tuple[DeviceMemory, int]] = []
    most, needed, budgeted, fit = 0, 0, False, False
    for device in devices:
        if not demand.need.goes_to(device.vendor):
            continue
        fit = True
        each = demand.need.on_each(device.vendor, 1)
        claim = demand.need.claim(device.total, device.free, each)
        if claim is not None:
            fitting.append((device, claim))
        else:
            most, needed, budgeted = max(most, device.free), max(needed, each), budgeted or device.budgeted
    missed: Miss | None = None
    for chosen in in_order(demand, fitting):
        option = with_host(demand, [chosen], host)
        if isinstance(option, Option):
            return option
        missed = missed or option
    if missed is not None:
        return missed
    if not fit and demand.need.place != "anywhere":
        return Miss(f"has no {demand.need.place} that its {demand.profile.name} backend can use")
    within = " within its VRAM budget" if budgeted else ""
    return Miss(f"has no device with {gib(needed)} free{share(demand)}{within}", most)


def share(demand: Demand) -> str:
    """What a fixed share of the device adds to the condition."""
    fraction = demand.need.fraction
    return "" if fraction is None else f" within {fraction:.0%} of it"
