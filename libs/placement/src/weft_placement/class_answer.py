"""What the nodes of one class that told the same of a demand's files answer alike."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.filters import FILTERS, READS, Filter, asks
from weft_placement.layout import Layout, Level, layout_on
from weft_placement.node_evaluator import Candidate


@dataclass(slots=True)
class ClassAnswer:
    """Which filters still ask, and how a replica may lie there."""

    refused: tuple[int, str] | None
    """The number of the filter that refuses them all, and its reason."""
    asked: tuple[tuple[int, Filter], ...]
    """Filters before that which each of them must be asked by."""
    crowded: tuple[int, Filter] | None
    """The filter that reads how many replicas there are."""
    layout: Layout | None
    reasons: dict[Hashable, tuple[int, str]] = field(default_factory=dict[Hashable, tuple[int, str]])
    """Why those that have too little room are refused, as it is found."""
    samples: dict[Level, Candidate] = field(default_factory=dict[Level, Candidate])
    """The answer of one of them on each level, as it is found."""


def class_answer(node: NodeView, assigned: NodeAssignments, demand: Demand) -> ClassAnswer:
    """By one of these nodes. Cost: its filters that read no more than the class and what was told."""
    asked: list[tuple[int, Filter]] = []
    crowded = None
    for stage, passes in enumerate(FILTERS):
        match READS.get(passes):
            case "class" | "told":
                reason = passes(node, assigned, demand)
                if reason is not None:
                    return ClassAnswer((stage, reason), tuple(asked), crowded, None)
            case "replicas":
                crowded = (stage, passes)
            case "held":
                pass
            case None:
                if asks(demand, passes):
                    asked.append((stage, passes))
    return ClassAnswer(None, tuple(asked), crowded, layout_on(node, demand))
