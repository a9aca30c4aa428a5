"""Nodes that have the files already."""

from typing import Final

from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.source import (
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    UploadSource,
)
from weft_fleet import NodeAssignments, NodeView

from weft_placement.demand import Demand
from weft_placement.fit.option import Option

DRAFT_SHARE: Final = 0.5
"""How much a draft model's files count beside the model's."""


def files_there(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option | None = None) -> float:
    """1 where nothing has to be fetched, else 0; with a draft model two thirds are the model's, a third the draft's."""
    model = _model_there(node, demand)
    if not demand.draft:
        return model
    draft = isinstance(node.file(demand.draft, demand.spec.engine), FileFound)
    return (model + DRAFT_SHARE * draft) / (1 + DRAFT_SHARE)


def _model_there(node: NodeView, demand: Demand) -> float:
    match demand.spec.source:
        case HfSource() | HttpsSource() | S3Source() | UploadSource():
            return 1.0 if demand.files in node.fetched else 0.0
        case _ if isinstance(node.file(demand.source, demand.spec.engine), FileFound):
            return 1.0
        case SimulatedSource():
            return 1.0
        case BuiltinSource(name=name):
            return 1.0 if name in node.builtins else 0.0
        case PathSource():
            return 0.0
