"""Subjects: where a fact stands in the log, and which filter covers an aggregate."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from weft_contracts.ids import (
    ArtifactId,
    InspectionId,
    KeyId,
    ModelId,
    NodeId,
    ReplicaId,
    RequestId,
    TokenId,
    name_key,
)

Kind = Literal[
    "node", "token", "mesh", "machine", "run", "model", "replica", "request", "inspection", "artifact", "name", "key"
]
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}

EVENTS = "weft.ev"
_TWO_IDS: Mapping[Kind, tuple[str, str]] = {"run": ("node", "replica"), "inspection": ("node", "inspection")}
"""Kinds whose aggregate is named by two ids, and what those name."""
_SUBJECT = re.compile(r"weft\.ev\.([a-z]+)\.([a-z0-9-]{1,40}(\.[a-z0-9-]{1,40})?)\.([a-z_]+)")


class BadSubject(ValueError):
    """A subject that is not one of the log's."""


@dataclass(frozen=True, slots=True, order=True)
class Aggregate:
    """One thing that facts are about: its kind and the ids that name it."""

    kind: Kind
    key: str
    """The id, or two ids joined by a dot."""

    @property
    def filter(self) -> str:
        """The filter that covers all of this aggregate's facts and nothing else."""
        return f"{EVENTS}.{self.kind}.{self.key}.>"

    def subject(self, fact_type: str) -> str:
        """The subject of a commit whose first fact has this type."""
        return f"{EVENTS}.{self.kind}.{self.key}.{fact_type}"

    def __str__(self) -> str:
        return f"{self.kind}.{self.key}"


def parse(subject: str) -> tuple[Aggregate, str]:
    """The aggregate and the first fact's type that a subject names. Raises BadSubject."""
    found = _SUBJECT.fullmatch(subject)
    kind = KINDS.get(found.group(1)) if found else None
    if found is None or kind is None:
        raise BadSubject(f"{subject!r} is not a subject of the event log: want {EVENTS}.<kind>.<id>.<type>")
    if (found.group(3) is not None) != (kind in _TWO_IDS):
        raise BadSubject(f"{subject!r} does not name one {kind}")
    return Aggregate(kind, found.group(2)), found.group(4)


def ids_of(kind: Kind) -> tuple[str, ...]:
    """What the ids in a subject of this kind name."""
    return _TWO_IDS.get(kind, (kind,))


def kind_filter(kind: Kind) -> str:
    """The filter that covers every aggregate of a kind."""
    return f"{EVENTS}.{kind}.>"


def node(id: NodeId) -> Aggregate:
    return Aggregate("node", id)


def machine(node: NodeId) -> Aggregate:
    return Aggregate("machine", node)


def run(node: NodeId, replica: ReplicaId) -> Aggregate:
    return Aggregate("run", f"{node}.{replica}")


def inspection(node: NodeId, id: InspectionId) -> Aggregate:
    return Aggregate("inspection", f"{node}.{id}")


def token(id: TokenId) -> Aggregate:
    return Aggregate("token", id)


def api_key(id: KeyId) -> Aggregate:
    return Aggregate("key", id)


def model(id: ModelId) -> Aggregate:
    return Aggregate("model", id)


def replica(id: ReplicaId) -> Aggregate:
    return Aggregate("replica", id)


def request(id: RequestId) -> Aggregate:
    return Aggregate("request", id)


def artifact(id: ArtifactId) -> Aggregate:
    return Aggregate("artifact", id)


def name(kind: str, text: str) -> Aggregate:
    """The claim on a unique name."""
    return Aggregate("name", name_key(kind, text))


MESH = Aggregate("mesh", "mesh")
"""The mesh itself: its founding, its brake, its formats, the engines that an admin told it of."""


def worker_filters(id: NodeId) -> tuple[str, ...]:
    """The part of the log that one worker reads, and no more."""
    return tuple(f"{EVENTS}.{kind}.{id}.>" for kind in ("node", "machine", "run", "inspection"))


def node_lease(id: NodeId) -> str:
    return f"weft.lease.node.{id}"


def service_lease(service: str) -> str:
    return f"weft.lease.service.{service}"


def node_signal(id: NodeId, what: str) -> str:
    return f"weft.sig.node.{id}.{what}"


def gateway_signal(instance: str, what: str) -> str:
    return f"weft.sig.gateway.{instance}.{what}"


def snapshot(service: str, fold: str, slot: str) -> str:
    """What the subjects of one of a fold's snapshots begin with: `.head` and `.<number>` follow."""
    return f"weft.snapshot.{service}.{fold}.{slot}"
