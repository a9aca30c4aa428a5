"""Nodes that have the files already."""

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


def files_there(node: NodeView, assigned: NodeAssignments, demand: Demand, option: Option) -> float:
    """1 where nothing has to be fetched, else 0."""
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
