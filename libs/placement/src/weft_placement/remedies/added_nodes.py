"""More nodes of a sort that is there: as many as a group over nodes lacks."""

from collections.abc import Generator, Sequence
from typing import Final

from weft_contracts.ids import NodeId
from weft_fleet import NodeAssignments, NodeView
from weft_fleet.changed import changed

from weft_placement.device_memory import takes
from weft_placement.fit.option import gib
from weft_placement.remedies.question import Question
from weft_placement.remedies.remedy import Remedy, Step

MOST_ADDED: Final = 16

Held = tuple[NodeView, NodeAssignments]


def added_nodes(question: Question, passing: Sequence[Held]) -> Generator[None, None, Remedy | None]:
    """The fewest empty nodes like the largest of those that pass the filters, beside which the ranking makes a group of
    these; None: no `MOST_ADDED` do, or it makes no groups."""
    demand = question.demand
    sizes = {node.id: _sizes(question, node) for node, _ in passing}
    like = min((node for node, _ in passing), key=lambda node: (-sum(sizes[node.id]), node.name), default=None)
    if not demand.groups or demand.chosen is not None or like is None or not sizes[like.id]:
        return None
    for count in range(1, MOST_ADDED + 1):
        yield
        new = [(changed(like, id=NodeId(f"n-new-{n}"), name="a new node"), NodeAssignments()) for n in range(count)]
        where = question.place([*passing, *new])
        if where is not None:
            size = sizes[like.id]
            devices = f"{len(size)} free {'device' if len(size) == 1 else 'devices'} of {gib(sum(size))} in all"
            nodes = f"a node like {like.name}, with" if count == 1 else f"{count} nodes like {like.name}, each with"
            return Remedy((Step("extend", f"add {nodes} {devices}", amount=count * sum(size)),), where)
    return None


def _sizes(question: Question, node: NodeView) -> list[int]:
    """Of the accelerators that the engine can use."""
    profile, hardware = question.demand.profile, node.hardware
    devices = hardware.devices if hardware is not None else ()
    return [each.memory for each in devices if each.vendor != "cpu" and takes(each, profile, profile.vendors)]
