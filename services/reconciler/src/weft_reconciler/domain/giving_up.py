"""When a revision is given up, or only the recipe that its engine was to move to."""

from collections.abc import Mapping

from weft_contracts.commit import Cause
from weft_contracts.ids import NodeId
from weft_fleet import ModelView, ReplicaView, Revision, RunView
from weft_requests import QUOTED, shortened

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.eligible_nodes import eligible_ids
from weft_reconciler.domain.failures import Failure, decisive_failure
from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import ReplicaSurvey
from weft_reconciler.domain.state import State


def fault_of(
    state: State, model: ModelView, revision: Revision, own: ReplicaSurvey, time: DecisionTime
) -> Failure | None:
    """A failure that waits for an answer and should get no other than giving up what failed.

    Where the revision served in other recipes and never in the failure's, that is the recipe, else the revision.
    """
    if any(run.phase == "failed" for surveyed in own.all for run in surveyed.replica.runs.values()):
        failures = state.failures.recent(model, revision, time)
        if state.fleet.brake is not None:  # who is offline now may be no less able than before
            failures = {node: failure for node, failure in failures.items() if failure.permanent}
        eligible = len(eligible_ids(state.fleet, model.id, revision) | failures.keys())
        for alike in _apart(model, revision, failures):
            decisive = decisive_failure(alike, eligible)
            if decisive is not None:
                return decisive
    return _held_up(state, model, revision, own, time)


def without_progress(state: State, model: ModelView, own: ReplicaSurvey, time: DecisionTime) -> Failure | None:
    """That a new revision didn't get further in time, while another is kept. Not while the brake holds, nor of a model
    of which none is wanted."""
    if state.fleet.brake is not None or model.asleep or not state.progress.is_overdue(model, time):
        return None
    waits = next((each.replica for each in own.of(ReplicaStatus.STARTING)), None)
    stands = "none is on its way" if waits is None else f"{waits.id} is {waits.state}"
    if waits is not None and waits.placed is None and waits.unplaceable is not None:
        stands = f"{stands}: {shortened(waits.unplaceable.reason, QUOTED)}"
    return Failure(
        time.now, f"no more of it were ready within {model.rules.progress_s:.0f} s; {stands}", False, model.cause
    )


def recipes_of(state: State, replica: ReplicaView) -> frozenset[str]:
    """Digests of the recipes that a replica's nodes were told to run it in."""
    parts = (state.fleet.assignment(member.node, replica.id) for member in replica.members)
    return frozenset(part.recipe for part in parts if part is not None and part.recipe)


def _apart(model: ModelView, revision: Revision, failures: Mapping[NodeId, Failure]) -> list[dict[NodeId, Failure]]:
    """The failures of each recipe on trial, and those of the revision itself; each with the latest last."""
    found: dict[str, dict[NodeId, Failure]] = {}
    for node, failure in failures.items():
        recipe = failure.recipe if model.on_trial(revision, failure.recipe) else ""
        found.setdefault(recipe, {})[node] = failure
    return list(found.values())


def _held_up(
    state: State, model: ModelView, revision: Revision, own: ReplicaSurvey, time: DecisionTime
) -> Failure | None:
    """A try of a recipe on trial that ended and is to be repeated, while fewer serve than should: those that are
    missing could be had in what served before."""
    if own.of(ReplicaStatus.UNKNOWN) or len(own.of(ReplicaStatus.SERVING, ReplicaStatus.OUTGOING)) >= revision.least:
        return None
    for surveyed in own.of(ReplicaStatus.STARTING):
        replica = surveyed.replica
        for recipe in sorted(recipes_of(state, replica)):
            for run in replica.runs.values() if model.on_trial(revision, recipe) else ():
                if reason := _end_of(run):
                    return Failure(time.now, reason, False, Cause(run.correlation_id, run.event_id), recipe)
    return None


def _end_of(run: RunView) -> str:
    """Why a run that starts again ended the last time; empty where it did not."""
    return run.reason if run.stopped == "exited" else run.last_end
