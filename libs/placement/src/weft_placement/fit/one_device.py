"""The first rung: the whole replica, or what its spec says lies there, on one accelerator."""

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.on_one import on_one
from weft_placement.fit.option import Miss, Option, miss

NAME = "one device"


def fit(devices: list[DeviceMemory], demand: Demand, host: DeviceMemory | None = None) -> Option | Miss:
    """The accelerator that the policy likes best among those that hold it.

    `host`: the processor's memory, for what it needs beside an accelerator; None: it isn't counted.
    """
    if (why := ruled_out(demand)) is not None:
        return miss(why, applies=False)
    accelerators = [device for device in devices if device.vendor != "cpu"]
    if not accelerators:
        must = demand.need.place == "accelerator"
        return miss(f"has no accelerator that its {demand.profile.name} backend can use", applies=must)
    return on_one(accelerators, demand, host)


def ruled_out(demand: Demand) -> str | None:
    """Why this is no rung for such a replica, whatever the node; None: it is one."""
    if demand.spans > 1:
        return f"must span {demand.spans} devices"
    return "must lie on a processor" if demand.need.place == "processor" else None
