"""Answers about what the mesh has to do now, as the gateway that answers sees it; and whom to ask for more."""

from typing_extensions import TypedDict
from weft_contracts.states import NodeState, ReplicaState

from weft_api.models import ModelState
from weft_api.status import AnsweringGateway, Brake


class ModelLoad(TypedDict):
    """One model. `running`: choices of requests that were accepted here and have not ended; `waiting` of them wait for
    a busy replica or for one that loads. `tokens`: output tokens handed on since this gateway began, those of running
    requests among them: what they grow by between two looks is its speed."""

    name: str
    state: ModelState
    ready: int
    wanted: int
    running: int
    waiting: int
    tokens: int


class NodeLoad(TypedDict):
    """One node. `running`: requests at the engines of its replicas that this gateway asks, of all gateways. `claimed`
    of its devices' `memory`, and `pressure`, what others use of it: bytes."""

    name: str
    state: NodeState
    replicas: int
    running: int
    devices: int
    memory: int
    claimed: int
    pressure: int


class ReplicaLoad(TypedDict):
    """One replica. `own`: requests of this gateway there; `running`: of all gateways, as its engine said last; null:
    this gateway has not asked it. `shunned`: why this gateway doesn't ask it; null: it does."""

    id: str
    model: str
    node: str | None
    state: ReplicaState
    own: int | None
    running: int | None
    shunned: str | None


class Totals(TypedDict):
    """Of all, shown or not: nodes, models and replicas by state, and what runs and waits here. Bytes of memory are of
    all nodes' devices."""

    nodes: dict[str, int]
    models: dict[str, int]
    replicas: dict[str, int]
    running: int
    waiting: int
    tokens: int
    memory: int
    claimed: int


class MeshLoad(TypedDict):
    """`at_s` is the gateway's own clock, for what lies between two looks. Of each list the busiest, up to what was
    asked for; of `problems` the first."""

    gateway: AnsweringGateway
    at_s: float
    position: int
    connected: bool
    brake: Brake | None
    totals: Totals
    models: list[ModelLoad]
    nodes: list[NodeLoad]
    replicas: list[ReplicaLoad]
    problems: list[str]


class ScrapedWorker(TypedDict):
    """A worker as Prometheus is told of it (`http_sd_configs`): its address, and labels that its figures get."""

    targets: list[str]
    labels: dict[str, str]
