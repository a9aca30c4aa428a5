"""A whole replica, or its part for an accelerator, on one of these devices."""

from weft_contracts.facts.values import Vendor

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.option import Miss, Option, gib, in_order, with_host


def on_one(devices: list[DeviceMemory], demand: Demand, host: DeviceMemory | None) -> Option | Miss:
    """The device that the policy likes best among those that hold it. `host`: the processor's memory, for what it needs
    beside an accelerator; None: it isn't counted."""
    fitting: list[tuple[DeviceMemory, int]] = []
    most, needed, budgeted = 0, 0, False
    need, of = demand.need, dict[Vendor, int]()
    for device in devices:
        each = of.get(device.vendor)
        if each is None:
            each = of[device.vendor] = need.on_each(device.vendor, 1)
        if need.fraction is None:
            claim = each if each <= device.free else None
        else:
            claim = need.claim(device.total, device.free, each)
        if claim is not None:
            fitting.append((device, claim))
        else:
            most, needed, budgeted = max(most, device.free), max(needed, each), budgeted or device.budgeted
    missed: Miss | None = None
    for chosen in in_order(demand, fitting):
        option = with_host([chosen], demand.need, host)
        if isinstance(option, Option):
            return option
        missed = missed or option
    if missed is not None:
        return missed
    within = " within its VRAM budget" if budgeted else ""
    return Miss(f"has no device with {gib(needed)} free{share(demand)}{within}", most)


def share(demand: Demand) -> str:
    """What a fixed share of the device adds to the condition."""
    fraction = demand.need.fraction
    return "" if fraction is None else f" within {fraction:.0%} of it"
