"""The last rung: the whole replica on the processor, in the machine's memory."""

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit.on_one import on_one
from weft_placement.fit.option import Miss, Option, miss

NAME = "processor"


def fit(devices: list[DeviceMemory], demand: Demand, host: DeviceMemory | None = None) -> Option | Miss:
    """The processor, where the engine runs on it and it holds the replica."""
    if demand.need.place == "accelerator" or not demand.processors:
        return miss("must lie on accelerators", applies=False)
    if demand.spans > 1:
        return miss(f"must span {demand.spans} devices", applies=False)
    processors = [device for device in devices if device.vendor == "cpu"]
    if not processors:
        must = demand.need.place == "processor"
        return miss(f"has no processor that its {demand.profile.name} backend can use", applies=must)
    return on_one(processors, demand, host)
