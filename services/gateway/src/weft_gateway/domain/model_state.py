"""How a model stands, in one word and one sentence."""

from collections.abc import Sequence
from typing import NamedTuple

from weft_api import ModelState
from weft_fleet import ModelView, ReplicaView, RunView, within_bounds


class Failing(NamedTuple):
    """A revision that was given up while one before it is kept."""

    revision: int
    reason: str


class ModelStanding(NamedTuple):
    """`wanted` replicas there should be, `ready` of them answer; what a new revision still lacks is not among them."""

    state: ModelState
    reason: str | None
    ready: int
    wanted: int
    serves: int | None = None
    """The revision that is kept: the newest, once it was ready with all its replicas. None: none ever answered."""
    failing: Failing | None = None


def standing(model: ModelView, replicas: Sequence[ReplicaView]) -> ModelStanding:
    """Judge a model by its own replicas. A model that still answers is ready, whatever else is wrong."""
    wanted = [replica for replica in replicas if replica.wanted and not replica.evicted]
    coming: list[ReplicaView] = []
    if model.replacing:
        coming = [replica for replica in wanted if replica.state != "ready" and _of_newest(model, replica)]
        wanted = [replica for replica in wanted if replica not in coming]
    ready = sum(replica.state == "ready" for replica in wanted)
    failing = _failing(model)
    state, reason = _state(model, wanted, ready)
    if failing is not None:
        said = f"revision {failing.revision} can't be served: {failing.reason}"
        reason = f"{reason.rstrip('.')}; {said}" if reason else said
    elif model.replacing and reason is None:
        reason = _trouble_of_newest(model, coming)
    elif reason is None and (refused := model.refused_for(model.current)):
        reason = f"its engine was not upgraded: {list(refused.values())[-1]}"
    serves = None if model.kept is None else model.serving.number
    return ModelStanding(state, reason, ready, len(wanted), serves, failing)


def _of_newest(model: ModelView, replica: ReplicaView) -> bool:
    return replica.revision in model.specs and model.of(replica.revision).runs_as(model.newest)


def _failing(model: ModelView) -> Failing | None:
    """The newest revision, where another goes on in its place."""
    reason = model.given_up.get(model.revision)
    return None if reason is None or model.current.number == model.revision else Failing(model.revision, reason)


def _state(model: ModelView, wanted: list[ReplicaView], ready: int) -> tuple[ModelState, str | None]:
    if model.deleted:
        return "deleted", None
    if ready:
        return "ready", model.unservable
    if model.unservable is not None:
        return "unservable", model.unservable
    if not wanted:
        if not rests(model):
            return "placing", None
        return "empty", f"it sleeps until it is asked: {model.size.why}" if model.size is not None else None
    return _coming(wanted)


def rests(model: ModelView) -> bool:
    """Whether a model without replicas is to have none: its minimum says so, and nothing asked for one."""
    return not within_bounds(model.current.spec, 0 if model.size is None else model.size.replicas)


def _coming(wanted: list[ReplicaView]) -> tuple[ModelState, str | None]:
    """The state of replicas of which none is ready."""
    homeless = [replica.unplaceable for replica in wanted if replica.state == "unplaceable"]
    if len(homeless) == len(wanted):
        return "unplaceable", next((u.reason for u in homeless if u is not None), None)
    if all(replica.placed is None for replica in wanted):
        return "placing", next((replica.unplaceable.reason for replica in wanted if replica.unplaceable), None)
    runs = [run for replica in wanted for run in replica.runs.values()]
    failed = (run.reason for run in runs if run.phase == "failed")
    again = (why for run in runs if (why := trouble_of(run)))
    anew = (why for replica in wanted if (why := trouble_of_ranks(replica)))
    return "loading", next(failed, None) or next(again, None) or next(anew, None)


def _trouble_of_newest(model: ModelView, coming: list[ReplicaView]) -> str | None:
    """What keeps a new revision from taking its place, if anything but time does."""
    if not coming:
        return None
    state, reason = _coming(coming)
    what = {"unplaceable": "has no place", "placing": "has no place yet"}.get(state, "is not ready")
    return f"revision {model.revision} {what}: {reason}" if reason else None


def trouble_of_ranks(replica: ReplicaView) -> str:
    """Why all ranks of a group start anew, as a sentence; empty where they don't."""
    if not replica.restarted or replica.state == "ready":
        return ""
    return f"all its ranks start again: {replica.restarted}"


def trouble_of(run: RunView) -> str:
    """What went wrong with a run that starts again, as a sentence; empty where nothing did."""
    if run.phase == "stopped" and run.stopped == "exited":
        return f"it starts again after: {run.reason}"
    return f"it starts again after: {run.last_end}" if run.last_end else ""
