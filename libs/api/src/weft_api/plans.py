"""Answers about plans: where models would go on the mesh as it is."""

from typing_extensions import TypedDict


class PlanMember(TypedDict):
    """One node's part of a replica, in bytes; accelerators as their vendors count them."""

    node: str
    rank: int
    ram: int
    gpus: dict[str, int]


class PlanPlacement(TypedDict):
    """A replica that has a place. `layers`: how many lie on the accelerator, where that was chosen; `passed_over`: why
    each better rung was."""

    model: str
    replica: int
    rung: str
    policy: str
    score: float
    scores: dict[str, float]
    members: list[PlanMember]
    layers: int | None
    passed_over: list[str]


class PlanRefusal(TypedDict):
    """A replica that has none: why, by rung and by node; what it needs and what there is for it, in bytes."""

    model: str
    replica: int
    reason: str
    rungs: dict[str, str]
    nodes: dict[str, str]
    need: int
    available: int


class Plan(TypedDict):
    """In the order in which they were asked for; nothing of it is decided. `position`: of the log, at which the fleet
    stood."""

    position: int
    placements: list[PlanPlacement]
    refused: list[PlanRefusal]
