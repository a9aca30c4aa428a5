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
    pack: float = 1.0
    files: float = 0.5
    devices: float = 0.25
    slots: int = 64
    """Replicas on one node at most."""

    def __post_init__(self) -> None:
        weights = (self.idle, self.pack, self.files, self.devices)
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


def parse_policy(text: str) -> Policy:
    """The policy that a receipt names; older ones did not set replicas apart. Raises BadPolicy."""
    try:
        pairs = dict(part.split("=", 1) for part in text.split())
        return Policy(
            apart=cast("Literal['nodes', 'no']", pairs.get("apart", "no")),
            idle=float(pairs["idle"]),
            pack=float(pairs["pack"]),
            files=float(pairs["files"]),
            devices=float(pairs["devices"]),
            slots=int(pairs["slots"]),
        )
    except (KeyError, ValueError) as error:
        raise BadPolicy(f"{text!r} is no policy: want {Policy().text!r} or the like") from error
