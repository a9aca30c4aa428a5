"""The model's files."""

from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.values import BuiltinSource, PathSource, SimulatedSource
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def files(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that has said it lacks the file, has not been asked, or has another file there."""
    source = demand.spec.source
    if isinstance(source, SimulatedSource):
        return None
    match node.file(demand.source, demand.spec.engine):
        case FileFound(weights=weights):
            same = weights.same_as(demand.spec.weights)
            return None if same else f"holds another file at {demand.source}"
        case FileMissing(reason=reason):
            return f"cannot load {demand.source}: {reason}"
        case None:
            match source:
                case BuiltinSource(name=name) if name in node.builtins:
                    return None
                case BuiltinSource(name=name):
                    return f"does not ship {name}"
                case PathSource():
                    return f"has not answered yet whether it holds {demand.source}"
