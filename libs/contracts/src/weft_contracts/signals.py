"""Live figures on SIGNALS: last value per subject, may be lost, never the truth."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field

from weft_contracts.facts.source import FilesDigest
from weft_contracts.facts.values import EngineName, Vendor
from weft_contracts.ids import ModelId, NodeId, ReplicaId

PROGRESS_BYTES = 64 * 1024
"""Of a node's progress, as JSON: more is not read."""
PROGRESS_AGAIN_S = 10.0
"""A progress that stands still is said again after so long."""
InstallPhase = Literal["queued", "waiting", "resolving", "fetching", "building", "placing", "checking"]
"""`queued`: others are installed first; `waiting`: another worker of this machine installs it."""
FetchPhase = Literal["waiting", "fetching", "placing"]
"""`waiting`: others are fetched first; `placing`: all is here, and is laid out as the engine wants it."""
Bytes = Annotated[int, Field(ge=0, le=1 << 60)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Word = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9._!+-]*$")]


Line = Annotated[str, Field(max_length=300, pattern=r"^[ -~]*$")]
"""Of plain characters, for people."""
MOST_FETCHES = 16
"""That one signal tells of."""


class ReplicaLoad(BaseModel, frozen=True, defer_build=True):
    """An engine's load as its agent saw it."""

    replica: ReplicaId
    running: int
    waiting: int
    kv_used: float
    steps: int


class NodeLoad(BaseModel, frozen=True, defer_build=True):
    """`weft.sig.node.<node>.load`: every engine's load of a node."""

    node: NodeId
    replicas: tuple[ReplicaLoad, ...]


class InstallSaid(BaseModel, frozen=True, defer_build=True):
    """An engine that a node installs."""

    engine: EngineName
    version: Word
    vendor: Vendor
    phase: InstallPhase
    package: Word = ""
    """The large one that is on its way."""
    fetched: Bytes = 0
    total: Bytes = 0
    """Bytes of the large packages that are here, and of those that are known of; 0: none is known."""
    fetching_s: Seconds = 0.0
    """Since the first of them was begun."""
    since_s: Seconds = 0.0
    """Since it was asked for."""
    overdue: bool = False
    """It goes on for longer than this node's operator finds right."""


class LoadSaid(BaseModel, frozen=True, defer_build=True):
    """A replica that loads its weights on a node."""

    replica: ReplicaId
    taken: Bytes
    total: Bytes
    """Bytes of the weights that its processes have mapped or read, and of all of them."""
    loading_s: Seconds
    """Since the engine was seen to take the first."""


NO_REPLICA: Final = ReplicaId("")
"""In the place of a replica: the node is to have it whether one needs it or not."""


class FetchSaid(BaseModel, frozen=True, defer_build=True):
    """A model's files that a node fetches from their source, for a replica or ahead of need. Replicas that wait for
    the same say the same."""

    replica: ReplicaId
    """`NO_REPLICA`: none waits for them."""
    files: FilesDigest = ""
    source: Line
    """Without what may be secret in it."""
    phase: FetchPhase
    file: Line = ""
    """The one that is on its way."""
    fetched: Bytes = 0
    total: Bytes = 0
    """Bytes of the files that are here, and of all."""
    rate: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)] = 0.0
    """Bytes a second of late; 0: not known."""
    fetching_s: Seconds = 0.0
    """Since the first was begun."""


class MemorySaid(BaseModel, frozen=True, defer_build=True):
    """What a replica's processes hold of a device that it claims."""

    replica: ReplicaId
    device: Annotated[int, Field(ge=0, le=1 << 16)]
    used: Bytes


class NodeProgress(BaseModel, frozen=True, defer_build=True):
    """`weft.sig.node.<node>.progress`: what a node installs, fetches and loads, and what runs there holds of its
    devices."""

    node: NodeId
    installs: Annotated[tuple[InstallSaid, ...], Field(max_length=32)] = ()
    loads: Annotated[tuple[LoadSaid, ...], Field(max_length=64)] = ()
    fetches: Annotated[tuple[FetchSaid, ...], Field(max_length=MOST_FETCHES)] = ()
    memory: Annotated[tuple[MemorySaid, ...], Field(max_length=256)] = ()

    @property
    def moves(self) -> bool:
        """Whether it is about something that will end."""
        return bool(self.installs or self.fetches or self.loads)


DEMAND_EVERY_S = 1.0
"""Between two signals of a gateway."""
MOST_DEMANDS = 500
"""Models that one signal tells of."""
DEMAND_BYTES = 128 * 1024
"""Of a gateway's demand, as JSON: more is not read."""
Requests = Annotated[int, Field(ge=0, le=1 << 32)]


class ModelDemand(BaseModel, frozen=True, defer_build=True):
    """What one gateway has to do for one model."""

    model: ModelId
    running: Requests = 0
    waiting: Requests = 0
    """In line for a busy replica."""
    loading: Requests = 0
    """For a replica that loads."""
    tokens: Annotated[int, Field(ge=0, le=1 << 60)] = 0
    """Put out since this gateway's start."""
    idle_s: Seconds = 0.0
    """Since something of it ran here; 0 while something does."""


class GatewayDemand(BaseModel, frozen=True, defer_build=True):
    """`weft.sig.gateway.<instance>.demand`: what a gateway has to do. It has had nothing to do for a model that isn't
    told of, unless some are left out."""

    models: Annotated[tuple[ModelDemand, ...], Field(max_length=MOST_DEMANDS)] = ()
    left_out: Requests = 0
    """Models for which this had no room: those that rest the longest."""
    leaving: bool = False
    """It stops: nothing is awaited of it."""


class Lease(BaseModel, frozen=True, defer_build=True):
    """A sign of life. `holder` is new at each start of the process that gives it."""

    holder: str
