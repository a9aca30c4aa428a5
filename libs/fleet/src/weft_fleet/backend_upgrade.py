"""That replicas of an engine were told to move to what its recipe says by then."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackendUpgrade:
    """The last one of an engine."""

    superseded: tuple[str, ...]
    """Digests of the variants that are left behind."""
    sequence: int
    """Of its commit: what was placed later stays where it is."""
