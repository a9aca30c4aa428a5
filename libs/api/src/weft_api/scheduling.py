"""Answers about how many replicas of a model there are to be, and on which nodes."""

from typing_extensions import TypedDict

from weft_api.changes import Changed


class Scheduling(TypedDict):
    """What the newest revision says of it. `max_replicas` 0: no upper bound; `spread_all`: a replica on each node that
    matches `node_selector`, whatever the two numbers say; then what its rollouts
    may do, and the figures of its own that it is sized by."""

    model_name: str
    model: str
    revision: int
    node_selector: dict[str, str]
    min_replicas: int
    max_replicas: int
    spread_all: bool
    max_surge: int
    max_unavailable: int
    progress_s: float
    scaling: dict[str, float]


class SchedulingPage(TypedDict):
    """Of all models, by name, and the cursor of the next page."""

    items: list[Scheduling]
    next: str | None


class SchedulingChanged(Changed, Scheduling):
    """A model's scheduling as it is now."""
