"""A revision of a model, and what its spec says of how many replicas it has."""

from dataclasses import dataclass

from weft_contracts.facts.values import ModelSpec


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a model."""

    number: int
    digest: str
    spec: ModelSpec

    @property
    def least(self) -> int:
        """How many replicas must be ready at one moment for it to be established, where no other is replaced: its
        minimum, at least one."""
        return max(1, self.spec.min_replicas)

    def runs_as(self, other: "Revision") -> bool:
        """Whether a replica of the one is as good as one of the other: they differ in numbers at most."""
        if self.number == other.number:
            return True
        return self.digest == other.digest and self.spec.places == other.spec.places


def is_elastic(spec: ModelSpec) -> bool:
    """Whether what there is to do says how many replicas there are."""
    return not spec.spread_all and (not spec.max_replicas or spec.max_replicas > spec.min_replicas)


def is_open(spec: ModelSpec) -> bool:
    """Whether a spec leaves the number of replicas to nodes or to what there is to do."""
    return spec.spread_all or is_elastic(spec)


def within_bounds(spec: ModelSpec, replicas: int) -> int:
    """The nearest number that a spec allows."""
    replicas = max(spec.min_replicas, replicas)
    return min(replicas, spec.max_replicas) if spec.max_replicas else replicas
