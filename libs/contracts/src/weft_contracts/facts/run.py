"""Facts about a replica's process on one node, by that node's worker-agent.

Each bears the epoch of the assignment that it answers: a reader counts it only under that one.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Count, Fact
from weft_contracts.facts.values import EngineName, MetadataFile, Port
from weft_contracts.ids import Incarnation
from weft_contracts.subjects import Kind


class _Run(Fact, frozen=True):
    kind: ClassVar[Kind] = "run"
    epoch: Count


class Installing(_Run, frozen=True):
    """The backend's environment is being made."""

    type: Literal["installing"] = "installing"
    engine: EngineName


class Fetching(_Run, frozen=True):
    """The model's files are on their way."""

    type: Literal["fetching"] = "fetching"
    bytes: Count


class Loading(_Run, frozen=True):
    """The engine process is up and loads the model."""

    type: Literal["loading"] = "loading"
    incarnation: Incarnation
    backend: Annotated[str, Field(max_length=160)] = ""
    """The name of the environment that it runs in; empty: it is none that the node made for it."""


class Ready(_Run, frozen=True):
    """The engine answers."""

    type: Literal["ready"] = "ready"
    incarnation: Incarnation
    port: Port
    engine: EngineName
    engine_version: str
    metadata: tuple[MetadataFile, ...] = ()
    """The model's small files as they are on its node: see `published_card`."""
    self_hosted: Annotated[bool | None, Field(exclude_if=lambda value: value is None)] = None
    """Whether the node's file server offers them; False: they are to be had at the source alone. None: it offers them
    for the replica alone, since its worker is older than cards."""


class Degraded(_Run, frozen=True):
    """It runs and does not do its work: requests run while the step counter stands still."""

    type: Literal["degraded"] = "degraded"
    incarnation: Incarnation
    why: str


class Exceeded(_Run, frozen=True):
    """Its processes hold more of a device's memory than the replica claims, and have for a while. Told once a start,
    and again when it is half as much more."""

    type: Literal["exceeded"] = "exceeded"
    incarnation: Incarnation
    device: Count
    claimed: Count
    """Bytes."""
    used: Count
    """Bytes that they hold for themselves."""


class Stopping(_Run, frozen=True):
    """It takes nothing new and finishes what runs."""

    type: Literal["stopping"] = "stopping"
    incarnation: Incarnation


class Stopped(_Run, frozen=True):
    """No process is left. Ends the claim when the assignment has ended."""

    type: Literal["stopped"] = "stopped"
    why: Literal["retired", "shutdown", "exited"]
    detail: str = ""
    unfinished: int = 0
    """Requests that still ran when its time to finish was up: each was told, or went on elsewhere."""
    last_lines: tuple[str, ...] = ()
    """Of the log of a process that ended unasked: at most 20 and 2 KiB, without what looks like a key or a prompt."""


class Failed(_Run, frozen=True):
    """The agent gave up: a permanent fault, or too many starts."""

    type: Literal["failed"] = "failed"
    reason: str
    permanent: bool
    """Another try, here or elsewhere, would fail the same way."""
    starts: Count
    last_lines: tuple[str, ...] = ()
    """See Stopped."""


RunFact = Annotated[
    Installing | Fetching | Loading | Ready | Degraded | Exceeded | Stopping | Stopped | Failed,
    Field(discriminator="type"),
]
