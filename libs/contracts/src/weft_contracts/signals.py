"""Live figures on SIGNALS: last value per subject, may be lost, never the truth."""

from pydantic import BaseModel

from weft_contracts.ids import NodeId, ReplicaId


class ReplicaLoad(BaseModel, frozen=True):
    """An engine's load as its agent saw it."""

    replica: ReplicaId
    running: int
    waiting: int
    kv_used: float
    steps: int


class NodeLoad(BaseModel, frozen=True):
    """`weft.sig.node.<node>.load`: every engine's load of a node."""

    node: NodeId
    replicas: tuple[ReplicaLoad, ...]


class Lease(BaseModel, frozen=True):
    """A sign of life. `holder` is new at each start of the process that gives it."""

    holder: str
