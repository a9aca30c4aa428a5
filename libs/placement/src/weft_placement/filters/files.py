"""The files of the model, of its LoRA adapters and of its draft model."""

from collections.abc import Iterator

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


def _draft(node: NodeView, demand: Demand) -> str | None:
    key = demand.draft
    match node.file(key, demand.spec.engine):
        case FileFound(weights=weights):
            same = demand.spec.draft is not None and weights.same_as(demand.spec.draft)
            return None if same else f"holds another draft model at {key}"
        case FileMissing(reason=reason):
            return f"cannot load the draft model {key}: {reason}"
        case None:
            return f"has not answered yet whether it holds the draft model {key}"


def _beside(node: NodeView, demand: Demand) -> Iterator[str | None]:
    """Of each file beside the model's, why it is no good."""
    for each in demand.spec.adapters:
        yield _lora(node, each, demand)
    if demand.draft:
        yield _draft(node, demand)


def files(node: NodeView, assigned: NodeAssignments, demand: Demand) -> str | None:
    """Refuse a node that has said it lacks the file, has not been asked, or has another file there; none for a model
    that nodes fetch."""
    source = demand.spec.source
    if isinstance(source, SimulatedSource):
        return None
    lacking = next(filter(None, _beside(node, demand)), None)
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
