"""What a plan comes to: replicas that have a place, and those that have none."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PlannedMember:
    """One node's part of a replica. Bytes; accelerators as their vendors count them."""

    node: str
    rank: int
    ram: int
    gpus: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class PlannedEnd:
    """A replica that runs and makes room for another."""

    model: str
    replica: int
    """Of those of its model that run, from 0 in the file's order."""
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """A replica that has a place."""

    model: str
    replica: int
    rung: str
    """By its key."""
    policy: str
    score: float
    scores: Mapping[str, float]
    members: tuple[PlannedMember, ...]
    layers: int | None
    """How many of its layers lie on the accelerator, where placement chose that."""
    passed_over: tuple[str, ...]
    """Why each rung under it was, and whether fewer devices than were asked for hold it."""
    evicts: tuple[PlannedEnd, ...] = ()
    """What ends to make room for it, the longest idle first."""

    @property
    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "model": self.model,
            "replica": self.replica,
            "rung": self.rung,
            "policy": self.policy,
            "score": self.score,
            "scores": dict(self.scores),
            "members": [
                {
                    "node": member.node,
                    "rank": member.rank,
                    "ram": member.ram,
                    "gpus": {str(index): size for index, size in member.gpus.items()},
                }
                for member in self.members
            ],
            "evicts": [
                {"model": each.model, "replica": each.replica, "nodes": list(each.nodes)} for each in self.evicts
            ],
        }


@dataclass(frozen=True, slots=True)
class Refused:
    """A replica that has none."""

    model: str
    replica: int
    reason: str
    rungs: Mapping[str, str]
    """Why each rung was passed over, by its key."""
    nodes: Mapping[str, str]
    """Every node's reason, with its own figures."""
    need: int
    """Bytes of one replica, on one device."""
    available: int
    """Bytes that there are for one."""

    @property
    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "model": self.model,
            "replica": self.replica,
            "rungs": dict(self.rungs),
            "nodes": dict(self.nodes),
            "need": self.need,
            "available": self.available,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it, in the file's order."""

    placements: tuple[Planned, ...]
    refused: tuple[Refused, ...]

    @property
    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        placements = [each.document for each in self.placements]
        return {"placements": placements, "refused": [each.document for each in self.refused]}


def plan_of_outcomes(found: Iterable[Planned | Refused]) -> Plan:
    """All of them."""
    outcomes = list(found)
    return Plan(
        tuple(each for each in outcomes if isinstance(each, Planned)),
        tuple(each for each in outcomes if isinstance(each, Refused)),
    )
