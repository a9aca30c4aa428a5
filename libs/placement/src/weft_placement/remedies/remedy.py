"""A remedy: changes that people can make, after which a replica has a place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.ids import NodeId, ReplicaId

StepKind = Literal[
    "approve",
    "uncordon",
    "resume",
    "start",
    "label",
    "cap",
    "budget",
    "install",
    "upgrade",
    "file",
    "disk",
    "share",
    "context",
    "concurrency",
    "layers",
    "end",
    "extend",
    "add",
]
_WEIGHTS: Mapping[int, frozenset[StepKind]] = MappingProxyType(
    {
        1: frozenset(("approve", "uncordon", "resume", "label", "cap", "budget")),
        2: frozenset(("start", "install", "upgrade", "file", "disk")),
        3: frozenset(("share", "context", "concurrency", "layers")),
        4: frozenset(("end",)),
        6: frozenset(("add", "extend")),
    }
)
"""What a change takes away or costs, beside others: of as many changes the lightest is told first."""


_MACHINES: frozenset[StepKind] = frozenset(("add", "extend"))


def weight_of(kind: StepKind) -> int:
    """Of one change."""
    return next(weight for weight, kinds in _WEIGHTS.items() if kind in kinds)


@dataclass(frozen=True, slots=True)
class Step:
    """One change."""

    kind: StepKind
    what: str
    """Said as a request, without a full stop."""
    command: str = ""
    """The command line that does it; empty: none does it alone."""
    amount: int = 0
    """How much of it, in bytes or in what is asked less: of equal steps the smaller comes first."""
    node: NodeId | None = None
    """The one that it changes; None: the model, or a node that is to be added."""
    replicas: tuple[ReplicaId, ...] = ()
    """Those that are to end."""
    arguments: Mapping[str, ArgumentValue] = field(default_factory=dict[str, ArgumentValue])
    """The fields of a spec that change, engine arguments under their own names."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Some changes, after all of which the replica has a place."""

    steps: tuple[Step, ...]
    node: str
    """Where it goes then, by name."""
    alike: int = 0
    """How many other nodes there are that changes of the same kinds would do it on."""

    @property
    def kinds(self) -> tuple[StepKind, ...]:
        """What sort of changes they are."""
        return tuple(sorted(step.kind for step in self.steps))

    @property
    def size(self) -> int:
        """How many changes: each replica that ends is one."""
        return sum(max(1, len(step.replicas)) for step in self.steps)

    @property
    def adds(self) -> bool:
        """Whether it takes another machine."""
        return not _MACHINES.isdisjoint(self.kinds)

    @property
    def order(self) -> tuple[bool, int, int, int, str]:
        """Sorts the smallest first; a machine that isn't there yet comes last."""
        weight = sum(weight_of(step.kind) * max(1, len(step.replicas)) for step in self.steps)
        return (self.adds, self.size, weight, sum(step.amount for step in self.steps), self.node)


@dataclass(frozen=True, slots=True)
class Remedies:
    """What was found."""

    found: tuple[Remedy, ...] = ()
    """The smallest first; empty: nothing that was tried gives it a place."""
    unseen: int = 0
    """Nodes that weren't looked at, since others refuse for the same reason."""
    fits: bool = False
    """It has a place as things are, and nothing has to change."""
