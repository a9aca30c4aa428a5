"""Answers about placement policies: by which nodes are weighed against one another."""

from typing_extensions import TypedDict
from weft_contracts.policies import Apart

from weft_api.changes import Changed


class PolicyWeights(TypedDict):
    """How much each scorer counts beside the others; 0: not at all."""

    idle: float
    binpack: float
    spread: float
    snug: float
    files: float
    devices: float


class Policy(TypedDict):
    """One policy. `digest` is what receipts name of it; `builtin`: Weft comes with it; `default`: models that name none
    are placed by it; `models`: those that name it, by name."""

    name: str
    digest: str
    builtin: bool
    default: bool
    apart: Apart
    slots: int
    weights: PolicyWeights
    models: list[str]


class PolicyPage(TypedDict):
    """Policies by name, and the cursor of the next page."""

    items: list[Policy]
    next: str | None


class PolicyChanged(Changed):
    """A policy that was set, chosen or withdrawn."""

    policy: str
