"""Answers about replicas."""

from typing_extensions import TypedDict
from weft_contracts.facts.values import EngineName
from weft_contracts.states import ReplicaState

from weft_api.values import Member


class Replica(TypedDict):
    """A replica, with its leading run. `added_at` is seconds since the epoch."""

    id: str
    model: str
    model_name: str
    revision: int
    digest: str
    state: ReplicaState
    wanted: bool
    node: str | None
    node_name: str | None
    members: list[Member]
    epoch: int
    engine: EngineName | None
    engine_version: str
    port: int | None
    incarnation: str | None
    run_event: str | None
    reason: str | None
    added_at: float


class ReplicaPage(TypedDict):
    """Replicas by id, and the cursor of the next page."""

    items: list[Replica]
    next: str | None


class ShownReplica(Replica):
    """`shunned`: why the gateway that answers doesn't ask it; null: it does."""

    shunned: str | None


class ReplicaLine(TypedDict):
    """A replica in one line; `bytes` is what it claims on all devices."""

    id: str
    model: str
    model_name: str
    state: ReplicaState
    wanted: bool
    node_name: str | None
    members: list[Member]
    bytes: int
    reason: str | None


class ShownReplicaLine(ReplicaLine):
    """`shunned`: why the gateway that answers doesn't ask it; null: it does."""

    shunned: str | None
