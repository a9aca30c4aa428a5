"""Facts about a node, by the registry; its assignments, by the scheduler."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.backends.recipe import BackendVariant
from weft_contracts.facts.fact import Count, Fact, Versioned
from weft_contracts.facts.source import FetchedSource, FilesDigest, SourceFiles
from weft_contracts.facts.values import Addresses, Caps, EngineName, Member, ModelSpec, NodeKind
from weft_contracts.ids import ModelId, NodeId, ReplicaId, TokenId
from weft_contracts.subjects import Kind


class _Node(Fact, frozen=True):
    kind: ClassVar[Kind] = "node"


class Joined(_Node, frozen=True):
    """A machine showed a token and its public key. It has no rights yet."""

    type: Literal["joined"] = "joined"
    name: str
    public_key: str
    """An nkey user key: `U` and 55 base32 characters."""
    token: TokenId
    addresses: Addresses
    labels: dict[str, str] = {}
    caps: Caps = Caps()
    node_kind: NodeKind = "worker"
    certificate_key: str = ""
    """The public key of its certificates; empty: it has none."""
    signed_at: float = 0.0
    """When it signed its registration, on its own clock, in seconds since the epoch; 0: nobody noted it."""


class Rejoined(_Node, frozen=True):
    """The same key came again: what it says of itself is taken anew, what an admin set stays."""

    type: Literal["rejoined"] = "rejoined"
    addresses: Addresses
    labels: dict[str, str] = {}
    caps: Caps = Caps()
    certificate_key: str = ""
    """As in `joined`: from here on this one."""
    signed_at: float = 0.0
    """As in `joined`: later than that of the registration before."""


class Approved(_Node, frozen=True):
    """It may work here. `by` is the actor, or the token that carried approval."""

    type: Literal["approved"] = "approved"
    by: str


class Rejected(_Node, frozen=True):
    """Turned away by an admin before it was approved. Only an admin's approval lifts that."""

    type: Literal["rejected"] = "rejected"
    why: str


class Expired(_Node, frozen=True):
    """It waited too long for approval: it is out, and may ask again as if it never had."""

    type: Literal["expired"] = "expired"
    waited_s: float
    signed_at: float = 0.0
    """Of its last registration: one that is no newer doesn't bring it back."""


class Labelled(_Node, frozen=True):
    """Labels set (a value) and taken away (None) by an admin."""

    type: Literal["labelled"] = "labelled"
    labels: dict[str, str | None]
    forgotten: tuple[str, ...] = ()
    """About these an admin says nothing any more: they are the node's own to say."""


class Capped(_Node, frozen=True):
    """What an admin allows here, all of it; what it leaves open is the worker's to say."""

    type: Literal["capped"] = "capped"
    caps: Caps


class Healthy(_Node, frozen=True):
    """Its lease is heard."""

    type: Literal["healthy"] = "healthy"


class Unhealthy(_Node, frozen=True):
    """Silent: no new placement here, gateways prefer others."""

    type: Literal["unhealthy"] = "unhealthy"
    silent_for: float
    """Seconds on the registry's own clock."""


class WentOffline(_Node, frozen=True):
    """Silent for so long that its replicas are replaced."""

    type: Literal["offline"] = "offline"
    silent_for: float


class Draining(_Node, frozen=True):
    """No new placement; what runs is replaced, finished and retired."""

    type: Literal["draining"] = "draining"
    why: Literal["admin", "worker"]
    """An admin's drain stays until it is lifted, a worker's own until it joins again."""
    deadline_s: float
    """What still runs so many seconds after this commit is told and ended."""
    by: str = ""
    """The actor, or the node itself."""
    leaves: str | None = None
    """Why it is removed once it is drained; None: it stays."""


class Drained(_Node, frozen=True):
    """Its last run has stopped."""

    type: Literal["drained"] = "drained"
    unfinished: dict[ReplicaId, int] = {}
    """Requests that still ran at the deadline, by replica: each was told, or went on elsewhere."""


class Resumed(_Node, frozen=True):
    """A drain was lifted, and so was a cut-off."""

    type: Literal["resumed"] = "resumed"


class CutOff(_Node, frozen=True):
    """It sent far more than a node has to say: its credential is revoked, its connections are ended. Only an admin's
    `resumed` lifts that."""

    type: Literal["cut_off"] = "cut_off"
    why: str
    """What it sent, and how much of that is a node's share."""


class Cordoned(_Node, frozen=True):
    """No new placement; what runs, runs on."""

    type: Literal["cordoned"] = "cordoned"
    why: str = ""


class Uncordoned(_Node, frozen=True):
    """A cordon was lifted."""

    type: Literal["uncordoned"] = "uncordoned"
    why: str = ""


class Removed(_Node, frozen=True):
    """It left for good: its claims end here."""

    type: Literal["removed"] = "removed"
    why: str


class Assigned(Versioned, _Node, frozen=True):
    """A replica, or its rank on this node, is to run here. Complete in itself.

    That of a rank is written in version 5: who doesn't know of ranks would run a whole replica in its place.
    """

    type: Literal["assigned"] = "assigned"
    newest: ClassVar[int] = 5
    replica: ReplicaId
    model: ModelId
    model_name: str
    revision: int
    digest: str
    """Of the revision's spec: sessions name it in their handshake."""
    epoch: int
    """Counts the starts of a group: all its ranks start anew together."""
    members: tuple[Member, ...]
    spec: ModelSpec
    backend: BackendVariant | None = None
    """What the engine runs in: the node installs it before, where it is not there yet. None: what lies there."""

    @property
    def needs(self) -> int:
        return self.spec.needs

    def member(self, node: NodeId) -> Member:
        """This node's part. Raises KeyError if it has none."""
        for member in self.members:
            if member.node == node:
                return member
        raise KeyError(node)


class Unassigned(_Node, frozen=True):
    """A replica is retired here: it takes nothing new, finishes what runs and stops."""

    type: Literal["unassigned"] = "unassigned"
    replica: ReplicaId
    deadline_s: float
    """After so many seconds what still runs is told and stopped."""
    why: str


class BackendWanted(_Node, frozen=True):
    """The node is to have this, whether a replica needs it or not. Complete in itself; it stands until it is lifted or
    replaced by another of this engine and vendor."""

    type: Literal["backend_wanted"] = "backend_wanted"
    engine: EngineName
    variant: BackendVariant


class BackendRetired(_Node, frozen=True):
    """These environments of an engine are needed no more: the node removes each once nothing uses it."""

    type: Literal["backend_retired"] = "backend_retired"
    engine: EngineName
    environments: Annotated[tuple[Annotated[str, Field(max_length=160)], ...], Field(max_length=64)]
    """By name, as the node reported them."""
    at_once: bool = False
    """As soon as it is unused; else once it was unused for as long as the node's operator keeps such."""
    lifts: bool = False
    """The node is to have none of this engine ahead of need any more."""
    why: str = ""


class FilesWanted(_Node, frozen=True):
    """The node is to have these files of a model and to keep them, whether a replica needs them or not. Complete in
    itself; it stands until they are retired."""

    type: Literal["files_wanted"] = "files_wanted"
    files: FilesDigest
    source: Annotated[FetchedSource, Field(discriminator="kind")]
    listed: SourceFiles
    """As in the spec of the model that they are of."""
    bytes: Count
    model_name: str = ""
    """Of the model that they were asked for, for people."""


class FilesRetired(_Node, frozen=True):
    """The node need not keep these files of a model any more: they are collected as others are."""

    type: Literal["files_retired"] = "files_retired"
    files: FilesDigest
    remove: bool = False
    """They are to go from its disk once nothing there uses them."""


NodeFact = Annotated[
    Joined
    | Rejoined
    | Approved
    | Rejected
    | Expired
    | Labelled
    | Capped
    | Healthy
    | Unhealthy
    | WentOffline
    | Draining
    | Drained
    | Resumed
    | CutOff
    | Cordoned
    | Uncordoned
    | Removed
    | Assigned
    | Unassigned
    | BackendWanted
    | BackendRetired
    | FilesWanted
    | FilesRetired,
    Field(discriminator="type"),
]
