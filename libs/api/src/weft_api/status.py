"""The whole mesh in one look."""

from typing import Literal

from typing_extensions import TypedDict

from weft_api.aliases import Alias
from weft_api.files import WantedFiles
from weft_api.models import Model
from weft_api.nodes import Node
from weft_api.progress import ReplicaProgress
from weft_api.replicas import ShownReplica, ShownReplicaLine

WriterState = Literal["starting", "away", "following", "another gateway"]
"""Of the gateway that writes the tables, or would."""
TablesState = Literal["off", WriterState]


class AnsweringGateway(TypedDict):
    """The gateway that answers."""

    instance: str
    ready: bool


class Brake(TypedDict):
    """So many of the nodes fell silent at once that nothing is replaced."""

    silent: int
    healthy_before: int


class Mesh(TypedDict):
    """How the mesh is, and what is wrong, in sentences."""

    health: Literal["ok", "degraded"]
    problems: list[str]
    brake: Brake | None


class Log(TypedDict):
    """The event log as the gateway has read it. `halted` and `full` say why it can't go on, or takes nothing more."""

    position: int
    caught_up: bool
    connected: bool
    halted: str | None
    full: str | None


class Tables(TypedDict):
    """What people page through, and up to which position of the log it is written."""

    state: TablesState
    position: int


class RequestCounts(TypedDict):
    """Inference requests at this gateway now."""

    running: int
    waiting: int


class StatusHead(TypedDict):
    """What both looks begin with. `progress`: what replicas wait for and hold, of those of which nodes said it;
    `no_tokenizer`: by model, why the gateway that answers makes no prompts of it though it should: files that can't be
    had or used, or that make others than the engine does."""

    gateway: AnsweringGateway
    mesh: Mesh
    log: Log
    tables: Tables
    requests: RequestCounts
    progress: dict[str, ReplicaProgress]
    no_tokenizer: dict[str, str]


class Status(StatusHead):
    """Everything. `files_ahead`: what nodes are to have ahead of need and lack, what can't be had first, 256 at
    most."""

    nodes: list[Node]
    models: list[Model]
    aliases: list[Alias]
    replicas: list[ShownReplica]
    files_ahead: list[WantedFiles]


class Claim(TypedDict):
    """How many replicas hold something on a node, and how many bytes."""

    replicas: int
    bytes: int


class Counts(TypedDict):
    """Nodes and models by state, replicas by model."""

    nodes: dict[str, int]
    models: dict[str, int]
    replicas: dict[str, int]


class StatusPage(StatusHead):
    """For the first page: counts of all, the first nodes with their claims, and the first replicas of each model."""

    counts: Counts
    nodes: list[Node]
    claims: dict[str, Claim]
    models: list[Model]
    aliases: list[Alias]
    replicas: list[ShownReplicaLine]
