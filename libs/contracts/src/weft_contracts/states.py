"""How nodes, replicas and runs stand: the words that folds say, answers show and people read."""

from typing import Literal

NodeState = Literal[
    "pending",
    "rejected",
    "healthy",
    "unhealthy",
    "offline",
    "cut_off",
    "draining",
    "drained",
    "cordoned",
    "removed",
]
ReplicaState = Literal[
    "added", "unplaceable", "placed", "loading", "ready", "degraded", "stopping", "stopped", "failed", "lost"
]
Phase = Literal["installing", "fetching", "loading", "ready", "degraded", "stopping", "stopped", "failed"]
"""Of a run: a replica's process on one node."""
