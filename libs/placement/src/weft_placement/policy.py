"""How the scorers weigh against one another: a policy, which its own text in a receipt restores."""

import hashlib
from dataclasses import dataclass, fields
from typing import Literal, cast


class BadPolicy(ValueError):
    """A policy's text or weights that make no policy."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What comes before all scores, the scorers' weights (0 leaves one out), and how many replicas a node may hold."""

    apart: Literal["nodes", "no"] = "nodes"
    """`nodes`: replicas of one model go to different nodes while there are any that fit, whatever the scores."""
    idle: float = 0.5
    """Weight of nodes with fewer replicas, where a model's strategy is to spread."""
    pack: float = 1.0
    """Weight of the strategy's own scorer: `binpack` or `spread`."""
    files: float = 0.5
    """Weight of nodes that have the files."""
    devices: float = 0.25
    """Weight of fewer devices."""
    slots: int = 64
    """Replicas on one node at most."""

    def __post_init__(self) -> None:
        weights = [getattr(self, name) for name in _WEIGHTS]
        if self.apart not in ("nodes", "no"):
            raise BadPolicy(f"{self.text!r}: want apart=nodes or apart=no")
        if min(weights) < 0 or sum(weights) <= 0 or self.slots < 1:
            raise BadPolicy(f"{self.text!r}: want weights of at least 0, one above 0, and slots of at least 1")

    @property
    def text(self) -> str:
        """`apart=nodes idle=0.5 …`: what a receipt names, enough to decide again."""
        return " ".join(f"{entry.name}={getattr(self, entry.name)}" for entry in fields(self))

    @property
    def digest(self) -> str:
        """16 hex digits over the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


_WEIGHTS = tuple(entry.name for entry in fields(Policy) if entry.name not in ("apart", "slots"))


def parse_policy(text: str) -> Policy:
    """The policy that a receipt names. Raises BadPolicy.

    What an older receipt doesn't name had no say in it: its weight is 0, and replicas were not set apart.
    """
    try:
        pairs = dict(part.split("=", 1) for part in text.split())
        weights = {name: float(pairs.get(name, "0")) for name in _WEIGHTS}
        apart = cast("Literal['nodes', 'no']", pairs.get("apart", "no"))
        return Policy(apart=apart, slots=int(pairs["slots"]), **weights)
    except (KeyError, ValueError) as error:
        raise BadPolicy(f"{text!r} is no policy: want {Policy().text!r} or the like") from error
