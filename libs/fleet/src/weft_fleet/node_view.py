"""A node as its events and its machine's events tell it; the latter are folded in `node_machine`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from weft_contracts.backend_wishes import (
    NO_WISHES,
    BackendWishes,
    after_retired,
    after_use,
    after_wanted,
)
from weft_contracts.facts.machine import (
    FileFound,
    FileMissing,
)
from weft_contracts.facts.node import Draining, NodeFact
from weft_contracts.facts.values import (
    Addresses,
    Backend,
    Caps,
    EngineName,
    Hardware,
    InstalledBackend,
    Installs,
    NodeKind,
)
from weft_contracts.file_wishes import NO_FILE_WISHES, FileWishes
from weft_contracts.ids import InspectionId, NodeId, ReplicaId
from weft_contracts.states import NodeState

from weft_fleet.auto_labels import auto_labels, is_automatic
from weft_fleet.changed import changed
from weft_fleet.node_files import expected_after, wishes_after

Presence = Literal["pending", "joined", "healthy", "unhealthy", "offline"]
"""`joined`: approved, and its lease was never heard."""


_SILENT = Caps()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a node is to look for at a source."""

    engine: EngineName
    """Engines load different files of one source."""
    secret: str = ""
    """That the source names; empty: none."""


@dataclass(frozen=True)
class NodeView:
    """One node. What runs on it, and what that claims, is in `NodeAssignments`."""

    id: NodeId
    name: str
    public_key: str
    addresses: Addresses
    own_labels: Mapping[str, str]
    """Labels that its worker says of itself."""
    labels: Mapping[str, str]
    """Its own labels, over them the automatic ones, and over all what an admin set or took away."""
    set_labels: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    own_caps: Caps = _SILENT
    """What its worker allows."""
    set_caps: Caps = _SILENT
    """What an admin allows."""
    caps: Caps = _SILENT
    """What the worker allows, and over it what an admin allows."""
    kind: NodeKind = "worker"
    sequence: int = 0
    """The sequence of the node aggregate's last commit: what a guard expects."""
    approved: bool = False
    rejected: str | None = None
    """Why an admin turned it away; None: nobody did."""
    signed_at: float = 0.0
    """When it signed the last registration that was taken, in seconds since the epoch: a later one must be newer."""
    cut_off: str | None = None
    """What it sent too much of; None: nobody cut it off."""
    presence: Presence = "pending"
    draining: bool = False
    drained: bool = False
    drain: Draining | None = None
    """Why it drains and how long that may take; None while it doesn't."""
    drain_ends_at: float = 0.0
    """What still runs then is told and ended; seconds since the epoch, while it drains."""
    unfinished: Mapping[ReplicaId, int] = field(default_factory=dict[ReplicaId, int])
    """Requests that still ran at the end of its last drain, by replica."""
    cordoned: bool = False
    removed: bool = False
    hardware: Hardware | None = None
    """None: not reported yet."""
    backends: tuple[Backend, ...] = ()
    builtins: tuple[str, ...] = ()
    agent_version: str = ""
    installs: Installs | None = None
    """What it can install for engines; None: nothing, its worker is older than that."""
    environments: tuple[InstalledBackend, ...] = ()
    """What it installed for engines, each version of it."""
    wishes: BackendWishes = NO_WISHES
    """What it is to have of engines ahead of need, and what no more."""
    reads: Mapping[str, int] = field(default_factory=dict[str, int])
    """The facts that its worker reads in versions above 1, each with the newest one."""
    asked: Mapping[InspectionId, Asked] = field(default_factory=dict[InspectionId, Asked])
    """Inspections that it has not answered yet."""
    files: Mapping[str, FileFound | FileMissing] = field(default_factory=dict[str, FileFound | FileMissing])
    """The last answer for each source and engine, by `looked_at`; by the source alone where no question is known."""
    fetched: Mapping[str, int] = field(default_factory=dict[str, int])
    """Models that lie fetched on its disk: bytes, by `digest.files_digest`."""
    fetched_at: Mapping[str, float] = field(default_factory=dict[str, float])
    """Since when, in seconds since the epoch."""
    expected: Mapping[str, None] = field(default_factory=dict[str, None])
    """Files that an assignment or a wish told it to have, by `digest.files_digest`, the latest told last: at most
    `node_files.EXPECTED_KEPT`."""
    file_wishes: FileWishes = NO_FILE_WISHES
    """Which models it is to have on its disk whether replicas need them or not, without the lists of their files; and
    which are to go."""
    pressure: Mapping[int, int] = field(default_factory=dict[int, int])
    """Bytes that processes other than replicas use, by device."""

    def file(self, source: str, engine: EngineName) -> FileFound | FileMissing | None:
        """What it last said of a source (`source_keys.source_key`), looked at for an engine."""
        return self.files.get(looked_at(source, engine)) or self.files.get(source)

    def holds(self, files: str) -> bool:
        """Whether it says that it has these files and the log tells why it would. A bare word explains nothing."""
        return files in self.fetched and (files in self.expected or files in self.file_wishes.wanted)

    @property
    def takes_replicas(self) -> bool:
        """Whether a new replica may go here at all."""
        shut = self.draining or self.cordoned or self.removed or self.cut_off is not None
        return self.approved and self.presence == "healthy" and not shut

    @property
    def gone(self) -> bool:
        """Whether what ran here must be taken for lost."""
        return self.removed or self.presence == "offline"

    @property
    def state(self) -> NodeState:
        """The one word that people see."""
        if self.removed:
            return "removed"
        if self.rejected is not None:
            return "rejected"
        if self.cut_off is not None:
            return "cut_off"
        match self.presence:
            case "pending" | "joined":
                return "pending"
            case "offline":
                return "drained" if self.drained else "offline"
            case "healthy" | "unhealthy":
                if self.drained:
                    return "drained"
                if self.draining:
                    return "draining"
                if self.cordoned and self.presence == "healthy":
                    return "cordoned"
                return self.presence


def relabelled(view: NodeView) -> NodeView:
    """The node with the labels that follow from what it says, from what it has, and from what admins set."""
    own = {name: value for name, value in view.own_labels.items() if not is_automatic(name)}
    labels: dict[str, str] = {**own, **auto_labels(view.name, view.hardware, view.backends)}
    for key, value in view.set_labels.items():
        if value is None:
            labels.pop(key, None)
        else:
            labels[key] = value
    return changed(view, labels=labels)


def _over(own: Caps, set_caps: Caps) -> Caps:
    said = {name: value for name, value in set_caps if value is not None}
    return own.model_copy(update=said)


def _with_presence(view: NodeView, presence: Presence) -> NodeView:
    """Presence is only counted of an approved node: pending never turns healthy by itself."""
    return changed(view, presence=presence) if view.approved else view


def evolve_node(id: NodeId, view: NodeView | None, fact: NodeFact, at: float) -> NodeView | None:
    """The node after one of its own facts, which the log took `at` seconds since the epoch. Nothing before `joined`
    makes a node, and `expired` unmakes it.

    Here and in the other folds facts are told apart by `type`: asking pydantic for a class costs ten times as much.
    """
    if fact.type == "joined":
        view = NodeView(
            id=id,
            name=fact.name,
            public_key=fact.public_key,
            addresses=fact.addresses,
            own_labels=fact.labels,
            labels={},
            own_caps=fact.caps,
            caps=fact.caps,
            kind=fact.node_kind,
            signed_at=fact.signed_at,
        )
        return relabelled(view)
    if view is None:
        return None
    match fact.type:
        case "rejoined":
            rejoined = changed(
                view,
                addresses=fact.addresses,
                own_labels=fact.labels,
                own_caps=fact.caps,
                signed_at=fact.signed_at or view.signed_at,
                caps=_over(fact.caps, view.set_caps),
            )
            return relabelled(rejoined)
        case "approved":
            presence = "joined" if view.presence == "pending" else view.presence
            return changed(view, approved=True, presence=presence, rejected=None)
        case "rejected":
            return changed(view, rejected=fact.why)
        case "expired":
            return None
        case "labelled":
            set_labels = {**view.set_labels, **fact.labels}
            for forgotten in fact.forgotten:
                set_labels.pop(forgotten, None)
            return relabelled(changed(view, set_labels=set_labels))
        case "capped":
            return changed(view, set_caps=fact.caps, caps=_over(view.own_caps, fact.caps))
        case "healthy":
            return _with_presence(view, "healthy")
        case "unhealthy":
            return _with_presence(view, "unhealthy")
        case "offline":
            return _with_presence(view, "offline")
        case "draining":
            ends_at = at + fact.deadline_s
            return changed(view, draining=True, drained=False, drain=fact, drain_ends_at=ends_at, unfinished={})
        case "drained":
            return changed(view, drained=True, unfinished=fact.unfinished)
        case "resumed":
            return changed(view, draining=False, drained=False, drain=None, drain_ends_at=0.0, cut_off=None)
        case "cut_off":
            return changed(view, cut_off=fact.why)
        case "cordoned":
            return changed(view, cordoned=True)
        case "uncordoned":
            return changed(view, cordoned=False)
        case "removed":
            return changed(view, removed=True)
        case "assigned":
            if fact.backend is None or not view.wishes.retired:
                return view
            return changed(view, wishes=after_use(view.wishes, fact.backend, view.environments))
        case "backend_wanted":
            return changed(view, wishes=after_wanted(view.wishes, fact, view.environments))
        case "backend_retired":
            return changed(view, wishes=after_retired(view.wishes, fact))
        case "files_wanted" | "files_retired":
            wishes = wishes_after(view.file_wishes, fact, view.fetched)
            if fact.type == "files_retired":
                return changed(view, file_wishes=wishes)
            return changed(view, file_wishes=wishes, expected=expected_after(view.expected, fact.files))
        case "unassigned":
            return view
        case _:
            assert_never(fact)


def looked_at(source: str, engine: EngineName) -> str:
    """A source as one engine loads it, as answers are kept and shown."""
    return f"{source} for {engine}"
