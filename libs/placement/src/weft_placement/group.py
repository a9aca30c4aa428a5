"""A replica over several nodes: what a node has for one, and what was found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weft_contracts.facts import values
from weft_contracts.facts.values import DeviceClaim, Member, Vendor
from weft_contracts.ids import NodeId

from weft_placement.fit.option import Option


class Offer(NamedTuple):
    """What a node that passed the filters has for a group."""

    node: NodeId
    first: tuple[float, ...]
    """Sorts before all else whom a group takes: preferred nodes, those farther from others of the model, those where
    the engine and the files lie."""
    most: Mapping[Vendor, tuple[int, ...]]
    """The most bytes that each of its accelerators takes of a replica, by vendor, the largest first."""
    host: int | None
    """What is free of the machine's memory; None: it isn't counted."""


@dataclass(frozen=True, slots=True)
class Part:
    """One node's part of a group."""

    node: NodeId
    option: Option

    @property
    def devices(self) -> tuple[DeviceClaim, ...]:
        """All that it holds there: of the machine's memory, then of its accelerators."""
        host = self.option.host
        return self.option.devices if host is None else (host, *self.option.devices)


@dataclass(frozen=True, slots=True)
class Group:
    """A place over several nodes. The first part leads."""

    parts: tuple[Part, ...]
    score: float
    scores: Mapping[str, float]

    @property
    def members(self) -> tuple[Member, ...]:
        """One for each node, by rank."""
        return tuple(Member(node=part.node, rank=rank, devices=part.devices) for rank, part in enumerate(self.parts))

    @property
    def recorded(self) -> tuple[values.Candidate, ...]:
        """All its nodes, as a receipt records them: each with the score of the whole."""
        return tuple(
            values.Candidate(
                node=part.node,
                devices=tuple(device.index for device in part.option.devices),
                score=self.score,
                scores=dict(self.scores),
            )
            for part in self.parts
        )

    @property
    def devices(self) -> int:
        """How many accelerators it takes."""
        return sum(len(part.option.devices) for part in self.parts)
