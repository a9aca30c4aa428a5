"""How a model stands, in one word and one sentence."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from weft_placement.fleet import ModelView, ReplicaView

ModelState = Literal["ready", "loading", "unplaceable", "unservable", "empty", "deleted"]


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
        return "empty", None
    homeless = [replica.unplaceable for replica in wanted if replica.state == "unplaceable"]
    if len(homeless) == len(wanted):
        return "unplaceable", next((u.reason for u in homeless if u is not None), None)
    failed = (run.reason for replica in wanted for run in replica.runs.values() if run.phase == "failed")
    return "loading", next(failed, None)
