"""How nodes that can take a replica are weighed against one another: a policy, which its text in a receipt restores.

Three come with Weft, by name: `balanced`, the default, `binpack` and `spread`. An admin's own stand beside them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Literal, cast

from weft_contracts.policies import PlacementPolicy

Apart = Literal["zones", "nodes", "no"]


class BadPolicy(ValueError):
    """A policy's text or weights that make no policy."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What comes before all scores, the scorers' weights (0 leaves one out), and how many replicas a node may hold."""

    name: str = "balanced"
    apart: Apart = "zones"
    """`nodes`: replicas of one model go to different nodes while there are any that fit, whatever the scores; `zones`:
    and among those to the zone, by the label of that name, that has the fewest of them."""
    idle: float = 0.5
    """Weight of nodes with fewer replicas."""
    binpack: float = 0.0
    """Weight of what fills begun devices, so that large gaps stay."""
    spread: float = 0.0
    """Weight of what leaves most free."""
    snug: float = 0.25
    """Weight of the smallest devices that hold it, so that larger ones stay for larger models."""
    files: float = 0.5
    """Weight of nodes that have the files."""
    devices: float = 0.25
    """Weight of fewer devices."""
    slots: int = 64
    """Replicas on one node at most."""
    pack: float = 0.0
    """In receipts from before policies had names: weight of `binpack` or `spread`, whichever the model's spec said."""

    def __post_init__(self) -> None:
        weights = [getattr(self, name) for name in _WEIGHTS]
        if self.apart not in ("zones", "nodes", "no"):
            raise BadPolicy(f"{self.text!r}: want apart=zones, apart=nodes or apart=no")
        if min(weights) < 0 or sum(weights) <= 0 or self.slots < 1:
            raise BadPolicy(f"{self.text!r}: want weights of at least 0, one above 0, and slots of at least 1")

    @property
    def text(self) -> str:
        """`name=balanced apart=zones idle=0.5 …`: what a receipt names, enough to decide again."""
        said = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return " ".join(f"{name}={value}" for name, value in said if value or name != "pack")

    @property
    def digest(self) -> str:
        """16 hex digits over the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def fills(self, strategy: str) -> bool:
        """Whether it takes the fullest device of a node that holds a replica, and not the emptiest.

        `strategy`: the model's own, which a policy without a name goes by.
        """
        if self.pack:
            return strategy != "spread"
        return self.binpack >= self.spread


_WEIGHTS = tuple(entry.name for entry in fields(Policy) if entry.name not in ("name", "apart", "slots"))
_UNNAMED = ""

BALANCED = Policy()
BINPACK = Policy("binpack", apart="no", idle=0.0, binpack=1.0, snug=0.0)
SPREAD = Policy("spread", spread=1.0, snug=0.0)
BUILTIN_POLICIES: Mapping[str, Policy] = MappingProxyType({each.name: each for each in (BALANCED, BINPACK, SPREAD)})


def policy_made_of(told: PlacementPolicy) -> Policy:
    """The policy that an admin told. Raises BadPolicy."""
    return Policy(
        name=told.name, apart=told.apart, slots=told.slots, **{name: getattr(told.weights, name) for name in _TOLD}
    )


_TOLD = tuple(name for name in _WEIGHTS if name != "pack")


def parse_policy(text: str) -> Policy:
    """The policy that a receipt names. Raises BadPolicy.

    What an older receipt doesn't name had no say in it: its weight is 0, and replicas were not set apart.
    """
    try:
        pairs = dict(part.split("=", 1) for part in text.split())
        weights = {name: float(pairs.get(name, "0")) for name in _WEIGHTS}
        apart = cast("Apart", pairs.get("apart", "no"))
        return Policy(name=pairs.get("name", _UNNAMED), apart=apart, slots=int(pairs["slots"]), **weights)
    except (KeyError, ValueError) as error:
        raise BadPolicy(f"{text!r} is no policy: want {Policy().text!r} or the like") from error
