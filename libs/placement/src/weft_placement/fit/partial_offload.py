"""The fourth rung: as many layers on one accelerator as fit, the rest in the machine's memory."""

from bisect import bisect_right

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.option import Miss, Option, gib, in_order, miss, with_host

NAME = "partial offload"


def fit(devices: list[DeviceMemory], demand: Demand, host: DeviceMemory | None = None) -> Option | Miss:
    """The accelerator that takes the most layers, if the machine's memory holds the rest.

    `host`: the processor's memory. Cost: the logarithm of the layers for each device.
    """
    if demand.spans > 1:
        return miss(f"must span {demand.spans} devices", applies=False)
    if not demand.offloads:
        return miss("nothing tells the sizes of its single layers", applies=False)
    if host is None:
        return miss("has told of no memory beside its devices", applies=True)
    fitting = [(device, count) for device in devices if (count := _layers(device, demand))]
    if not fitting:
        least = demand.offloads[0]
        accelerators = [device for device in devices if device.vendor != "cpu"]
        if not accelerators:
            return miss(f"has no accelerator that its {demand.profile.name} backend can use", applies=False)
        needed = min(least.on_each(device.vendor, 1) for device in accelerators)
        most = max(device.free for device in accelerators)
        return Miss(f"has no device with {gib(needed)} free, which its last layer alone takes", most)
    most_layers = max(count for _, count in fitting)
    need = demand.offloads[most_layers - 1]
    missed: Miss | None = None
    for device, claim in in_order(
        demand, [(device, need.on_each(device.vendor, 1)) for device, count in fitting if count == most_layers]
    ):
        option = with_host([(device, claim)], need, host, most_layers)
        if isinstance(option, Option):
            return option
        missed = missed or option
    assert missed is not None
    return missed


def _layers(device: DeviceMemory, demand: Demand) -> int:
    """How many layers the device holds."""
    if device.vendor == "cpu":
        return 0
    return bisect_right(
        demand.offloads,
        0,
        key=lambda need: 0 if need.claim(device.total, device.free, need.on_each(device.vendor, 1)) is not None else 1,
    )
