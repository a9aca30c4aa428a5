"""The files of the model and of its LoRA adapters."""

from weft_contracts.digest import lora_key
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.source import BuiltinSource, SimulatedSource
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand


def _lora(node: NodeView, adapter: LoraAdapter, demand: Demand) -> str | None:
    key = lora_key(adapter)
    match node.file(key, demand.spec.engine):
        case FileFound(weights=weights):
            return None if weights.fingerprint == adapter.fingerprint else f"holds another LoRA adapter at {key}"
        case FileMissing(reason=reason):
            return f"cannot load {key}: {reason}"
        case None:
            return f"has not answered yet whether it holds {key}"


def files(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that has said it lacks the file, has not been asked, or has another file there; none for a model
    that nodes fetch."""
    source = demand.spec.source
    if isinstance(source, SimulatedSource):
        return None
    lacking = next((lacks for lacks in (_lora(node, each, demand) for each in demand.spec.adapters) if lacks), None)
    if demand.files:
        return lacking  # it fetches the model's, from others where it can't reach the source itself
    match node.file(demand.source, demand.spec.engine):
        case FileFound(weights=weights):
            same = weights.same_as(demand.spec.weights)
            return lacking if same else f"holds another file at {demand.source}"
        case FileMissing(reason=reason):
            return f"cannot load {demand.source}: {reason}"
        case None:
            match source:
                case BuiltinSource(name=name) if name in node.builtins:
                    return lacking
                case BuiltinSource(name=name):
                    return f"does not ship {name}"
                case _:
                    return f"has not answered yet whether it holds {demand.source}"
