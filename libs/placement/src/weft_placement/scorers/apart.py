"""Other nodes before this one: what the loss of one machine takes of a model.

No weighted scorer: it ranks candidates before all of those (`Candidate.rank`).
"""

from collections import Counter

from weft_fleet import NodeAssignments

from weft_placement.demand import Demand
from weft_placement.device_memory import DeviceMemory


def apart(assigned: NodeAssignments, demand: Demand) -> float:
    """1 where no replica of the model runs, less beside one of another revision, ½ beside one of its own, and so on.

    Any number of another revision's weighs less than one more of its own: those go when this one is rolled out. Who
    retires does not count.
    """
    if demand.model not in assigned.models:
        return 1.0
    own = others = 0
    for assignment in assigned.assignments.values():
        if assignment.model == demand.model and not assignment.retiring:
            if assignment.revision == demand.revision:
                own += 1
            else:
                others += 1
    return round(1 / (1 + own + others / (1 + others)), 6)


def beside_own(devices: list[DeviceMemory], assigned: NodeAssignments, demand: Demand) -> list[DeviceMemory]:
    """The devices, each with how many replicas of the model hold memory on it: who stays apart has its own."""
    held = Counter(
        device.index
        for assignment in assigned.assignments.values()
        if assignment.model == demand.model and not assignment.retiring
        for device in assignment.devices
    )
    return [device._replace(beside=held[device.device_index]) for device in devices]
