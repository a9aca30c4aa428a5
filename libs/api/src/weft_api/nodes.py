"""Answers about nodes."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict
from weft_contracts.facts.values import NodeKind
from weft_contracts.states import NodeState

from weft_api.replicas import Replica
from weft_api.values import Addresses, Backend, FileFound, FileMissing, Hardware


class Caps(TypedDict):
    """What a node takes at most. Null is not said; a cap of 0 and a budget without text are no limit."""

    replicas_per_model: int | None
    vram_budget: str | None


class Drain(TypedDict):
    """Why a node drains, and until when in seconds since the epoch. `unfinished`: requests that still ran then, by
    replica."""

    why: Literal["admin", "worker"]
    by: str
    deadline_s: float
    ends_at: float
    leaves: str | None
    unfinished: dict[str, int]


class Node(TypedDict):
    """A node as it is listed."""

    id: str
    name: str
    kind: NodeKind
    state: NodeState
    approved: bool
    addresses: Addresses
    labels: dict[str, str]
    hardware: Hardware | None
    backends: list[Backend]
    builtins: list[str]
    pressure: dict[str, int]
    agent_version: str
    cordoned: bool
    drain: Drain | None
    caps: Caps
    reason: str | None


class NodePage(TypedDict):
    """Nodes by id, and the cursor of the next page."""

    items: list[Node]
    next: str | None


class Heartbeat(TypedDict):
    """A node's last sign of life over HTTP, while it doesn't reach the log."""

    age_s: float
    problem: str


class NodeHeard(TypedDict):
    """A node whose sign of life was taken, and how it stands."""

    node: str
    state: NodeState


class NodeWaits(TypedDict):
    """A node that waits: for approval, or for the credential that comes with it."""

    state: Literal["pending"]


class NodeCredential(TypedDict):
    """What a node reaches the log with until `expires_at`, in seconds since the epoch. `certificate`: its own and the
    authority's (PEM), where the mesh speaks TLS."""

    jwt: str
    nats_url: str
    expires_at: float
    certificate: NotRequired[str]


class NodeDetail(Node):
    """A node with what runs on it and what that claims, in bytes by device."""

    replicas: list[str]
    claims: dict[str, int]
    files: dict[str, FileFound | FileMissing]
    own_labels: dict[str, str]
    set_labels: dict[str, str | None]
    own_caps: Caps
    set_caps: Caps
    heartbeat: Heartbeat | None


class Labels(TypedDict):
    """What a node bears, what it says of itself, and what an admin set or (null) took away."""

    labels: dict[str, str]
    own: dict[str, str]
    set: dict[str, str | None]


class ModelOnNode(TypedDict):
    """A model with a place on a node, and its replicas there."""

    id: str
    name: str
    replicas: list[Replica]


class ModelsOnNode(TypedDict):
    """The models that a node runs, by name."""

    items: list[ModelOnNode]
