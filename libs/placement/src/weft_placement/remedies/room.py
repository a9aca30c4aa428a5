"""Room on a node: its VRAM budget lifted, or the smallest set of other models' replicas that end there."""

from collections.abc import Callable, Sequence
from itertools import combinations

from weft_contracts.facts.values import VramBudget
from weft_fleet import Assignment, Fleet, NodeAssignments
from weft_fleet.changed import changed

from weft_placement.demand import Demand
from weft_placement.eviction.endable import keeps_its_own
from weft_placement.fit.option import gib
from weft_placement.remedies.on_node import NodeChange
from weft_placement.remedies.remedy import Step

SINGLES = 64
"""Replicas of a node that are tried alone, the smallest first."""
PAIRED = 12
"""The largest, which are tried two and two."""
Fits = Callable[[NodeChange], bool]


def unbudgeted(there: NodeChange) -> NodeChange:
    """Without a budget on what replicas claim."""
    name = there.node.name
    step = Step(
        "budget",
        f"let replicas claim all of each device of {name}",
        f"weft nodes vram-budget {name} 100%",
        node=there.node.id,
    )
    caps = there.node.caps.model_copy(update={"vram_budget": VramBudget(share=1.0)})
    return NodeChange(changed(there.node, caps=caps), there.assigned, (*there.steps, step))


def ended(fleet: Fleet, there: NodeChange, demand: Demand, fits: Fits) -> NodeChange | None:
    """With so few replicas of other models ended that it fits; None: not even without all of them. Each says why it
    doesn't give way by itself, where time alone won't change that.

    The fewest are found up to two; of three and more, what the largest make that can't be spared.
    """
    others = [each for each in there.assigned.assignments.values() if each.holds and each.model != demand.model]
    others.sort(key=_bytes)
    if not others or not fits(_without(fleet, there, demand, others)):
        return None
    for each in others[:SINGLES]:
        if fits(found := _without(fleet, there, demand, [each])):
            return found
    pairs = sorted(combinations(others[-PAIRED:], 2), key=lambda pair: sum(map(_bytes, pair)))
    for pair in pairs:
        if fits(found := _without(fleet, there, demand, pair)):
            return found
    going = list[Assignment]()
    for each in reversed(others):
        going.append(each)
        if fits(_without(fleet, there, demand, going)):
            break
    for each in tuple(going):
        fewer = [other for other in going if other is not each]
        if fits(_without(fleet, there, demand, fewer)):
            going = fewer
    return _without(fleet, there, demand, going)


def _bytes(assignment: Assignment) -> int:
    return sum(device.bytes for device in assignment.devices)


def _without(fleet: Fleet, there: NodeChange, demand: Demand, going: Sequence[Assignment]) -> NodeChange:
    left: NodeAssignments = there.assigned
    for each in going:
        left = left.without(each.replica)
    steps = tuple(_step(fleet, there, each, demand.spec.priority) for each in going)
    return NodeChange(there.node, left, (*there.steps, *steps))


def _step(fleet: Fleet, there: NodeChange, each: Assignment, priority: int) -> Step:
    """One step for each: people end replicas model by model."""
    model, held = fleet.models.get(each.model), _bytes(each)
    name = model.name if model is not None else each.model
    told = f"one replica of {name} fewer: {each.replica} on {there.node.name}, which holds {gib(held)}"
    why = "" if model is None or model.deleted else keeps_its_own(model, priority)
    if why:
        told += f"; it never gives way by itself: {why}"
    if each.replica in fleet.rooms:  # it waits, and others ended for it
        told = f"end what is kept for {each.replica} of {name} on {there.node.name}, which is {gib(held)}"
    if each.retiring:
        told = f"wait for the end of {each.replica} of {name} on {there.node.name}, which holds {gib(held)}"
    alone = model is not None and len(model.replicas) == 1 and not each.retiring
    return Step("end", told, f"weft remove {name}" if alone else "", held, there.node.id, (each.replica,))
