"""The fleet as folded from the log: nodes, models, replicas, runs and claims, for all that decide or show."""

from weft_fleet.alias_view import AliasView
from weft_fleet.assignments import Assignment, NodeAssignments
from weft_fleet.canonical import digest_of
from weft_fleet.fleet import CLOSED_KEPT, Fleet
from weft_fleet.formats import workers_behind
from weft_fleet.model_view import ModelView, Size
from weft_fleet.node_view import NodeView, Presence
from weft_fleet.registrations import JoinLimits, Registrations, TooMany
from weft_fleet.replica_view import ReplicaView
from weft_fleet.revision import Revision, is_elastic, is_open, within_bounds
from weft_fleet.run_view import RunView
from weft_fleet.secret_view import SecretView

__all__ = [
    "CLOSED_KEPT",
    "AliasView",
    "Assignment",
    "Fleet",
    "JoinLimits",
    "ModelView",
    "NodeAssignments",
    "NodeView",
    "Presence",
    "Registrations",
    "ReplicaView",
    "Revision",
    "RunView",
    "SecretView",
    "Size",
    "TooMany",
    "digest_of",
    "is_elastic",
    "is_open",
    "within_bounds",
    "workers_behind",
]
