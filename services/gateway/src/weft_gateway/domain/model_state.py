"""How a model stands, in one word and one sentence."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from weft_placement.fleet import ModelView, ReplicaView, RunView

ModelState = Literal["ready", "loading", "placing", "unplaceable", "unservable", "empty", "deleted"]
"""`placing`: it has no place yet, and it is not known that there is none."""


class ModelStanding(NamedTuple):
    """`wanted` replicas there should be, `ready` of them answer."""

    state: ModelState
    reason: str | None
    ready: int
    wanted: int


def standing(model: ModelView, replicas: Sequence[ReplicaView]) -> ModelStanding:
    """Judge a model by its own replicas. A model that still answers is ready, whatever else is wrong."""
    wanted = [replica for replica in replicas if replica.wanted and not replica.evicted]
    ready = sum(replica.state == "ready" for replica in wanted)
    state, reason = _state(model, wanted, ready)
    return ModelStanding(state, reason, ready, len(wanted))


def _state(model: ModelView, wanted: list[ReplicaView], ready: int) -> tuple[ModelState, str | None]:
    if model.deleted:
        return "deleted", None
    if ready:
        return "ready", model.unservable
    if model.unservable is not None:
        return "unservable", model.unservable
    if not wanted:
        return ("placing" if model.spec.min_replicas else "empty"), None
    homeless = [replica.unplaceable for replica in wanted if replica.state == "unplaceable"]
    if len(homeless) == len(wanted):
        return "unplaceable", next((u.reason for u in homeless if u is not None), None)
    if all(replica.placed is None for replica in wanted):
        return "placing", next((replica.unplaceable.reason for replica in wanted if replica.unplaceable), None)
    runs = [run for replica in wanted for run in replica.runs.values()]
    failed = (run.reason for run in runs if run.phase == "failed")
    again = (why for run in runs if (why := trouble_of(run)))
    return "loading", next(failed, None) or next(again, None)


def trouble_of(run: RunView) -> str:
    """What went wrong with a run that starts again, as a sentence; empty where nothing did."""
    if run.phase == "stopped" and run.stopped == "exited":
        return f"it starts again after: {run.reason}"
    return f"it starts again after: {run.last_end}" if run.last_end else ""
