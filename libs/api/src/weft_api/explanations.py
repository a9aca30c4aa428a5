"""Answers that explain: why a replica is where it is, what a node could take, what an alias stands for."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from weft_api.aliases import Alias
from weft_api.placements import ReplicaExplanation


class ModelFit(TypedDict):
    """Whether a node could take one more replica of a model now: `refusal` says why not; null: it could."""

    model: str
    revision: int
    holds: int
    waiting: int
    refusal: str | None
    rung: str
    score: float


class DeviceRoom(TypedDict):
    """A device's memory in bytes: `claimed` by replicas, held by `others` as measured, `free` for more."""

    index: int
    vendor: str
    memory: int
    claimed: int
    others: int
    free: int


class NodeExplanation(TypedDict):
    """Why a node is empty or full: its devices, and for each model whether it could take one more. Models beyond the
    first 200 are counted in `more`."""

    node: str
    name: str
    state: str
    position: int
    replicas: int
    devices: list[DeviceRoom]
    models: list[ModelFit]
    more: int


class AliasExplanation(Alias):
    """An alias, and the position of the log at which it was set."""

    position: int


class Explained(TypedDict):
    """One of these, by `kind`; of a `model` that has no replica, `replica` is the one that would come next."""

    kind: Literal["replica", "model", "node", "alias"]
    replica: NotRequired[ReplicaExplanation]
    node: NotRequired[NodeExplanation]
    alias: NotRequired[AliasExplanation]
