"""The folded index of nodes, models, replicas, runs and claims, shared by all that decide or show."""

from weft_placement.fleet.canonical import digest_of
from weft_placement.fleet.held import Assignment, Held
from weft_placement.fleet.index import CLOSED_KEPT, Fleet
from weft_placement.fleet.model_view import ModelView
from weft_placement.fleet.node_view import NodeView, Presence
from weft_placement.fleet.replica_view import ReplicaState, ReplicaView
from weft_placement.fleet.run_view import Phase, RunView

__all__ = [
    "CLOSED_KEPT",
    "Assignment",
    "Fleet",
    "Held",
    "ModelView",
    "NodeView",
    "Phase",
    "Presence",
    "ReplicaState",
    "ReplicaView",
    "RunView",
    "digest_of",
]
