"""How many replicas of a model there should be, and which of those there are may go."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import Scaled, Unservable
from weft_contracts.ids import NodeId, replica_id
from weft_fleet import ModelView, Revision
from weft_requests import QUOTED, shortened

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.failures import Failure
from weft_reconciler.domain.giving_up import fault_of, recipes_of
from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import ReplicaSurvey, SurveyedReplica, survey_replicas
from weft_reconciler.domain.rollout import Rollout, rollout_of
from weft_reconciler.domain.state import State

ADDED_AT_ONCE = 32
"""Replicas that one commit adds of a revision: as many as the scheduler places in one batch."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one revision lacks and has too much of."""

    add: int
    retire: list[SurveyedReplica]


def reconcile(state: State, model: ModelView, time: DecisionTime) -> Decision | None:
    """What a model lacks or has too much of, or None when it stands as it should."""
    rollout = rollout_of(model)
    survey = survey_replicas(state, model, rollout, time)
    for revision in rollout.revisions:
        if revision.number not in model.given_up:
            own = survey.counting_for(revision)
            fault = fault_of(state, model, revision, own, time)
            if fault is not None:
                return _give_up(state, model, revision, own, fault)
    old = kept_change(state, model, rollout, survey)
    new = new_change(state, model, rollout, survey, old)
    retire = new.retire + old.retire
    if not new.add and not old.add and not retire:
        if survey.settled:
            state.dirty.pop(model.id, None)
        return None
    return _scaled(state, model, rollout, survey, time, new, old)


def kept_change(state: State, model: ModelView, rollout: Rollout, survey: ReplicaSurvey) -> Change:
    """Of the revision that is kept: repaired to what the new one doesn't serve yet, and no more than that."""
    old = rollout.old
    if old is None:
        return Change(0, [])
    own, new = survey.counting_for(old), survey.counting_for(rollout.new)
    serving = old.least - len(new.of(ReplicaStatus.SERVING))
    over, stand_ins = own.of(ReplicaStatus.ENDED), own.stand_ins
    retire = over + stand_ins[max(0, serving - len(own.of(ReplicaStatus.SERVING))) :]
    add = 0
    if old.number not in model.given_up:
        # What of the new one starts again, or is awaited, has taken its place already.
        there = new.of(ReplicaStatus.SERVING, ReplicaStatus.UNKNOWN, ReplicaStatus.OUTGOING)
        there += [surveyed for surveyed in new.of(ReplicaStatus.STARTING) if surveyed.replica.id in state.served]
        add = max(0, min(old.least - len(there) - len(own.counted), ADDED_AT_ONCE))
    if not add and not own.of(ReplicaStatus.UNKNOWN):
        # What serves comes first, then the oldest.
        counted = sorted(own.counted, key=lambda surveyed: surveyed.assessment.status is not ReplicaStatus.SERVING)
        retire += list(reversed(counted[max(0, serving) :]))
    return Change(add, retire)


def new_change(state: State, model: ModelView, rollout: Rollout, survey: ReplicaSurvey, old: Change) -> Change:
    """Of the revision that there should be in the end, and of those that it superseded."""
    new = rollout.new
    own = survey.counting_for(new, None)
    target = wanted_count(rollout, survey)
    most = target if rollout.old is None else max(target, rollout.old.least)
    stay = max(0, most - len(survey.of(ReplicaStatus.SERVING)))
    retire = own.of(ReplicaStatus.ENDED) + own.stand_ins[stay:]
    if new.number in model.given_up:
        return Change(0, retire + _unproven(state, own))
    beside = old.add + sum(surveyed.assessment.outdated for surveyed in own.stand_ins[:stay])
    if rollout.old is not None:
        there = survey.counting_for(rollout.old)
        beside += len(there.all) - len(old.retire)
    add = missing(own, target, most, beside)
    if not add and not own.of(ReplicaStatus.UNKNOWN):
        retire += surplus(state, new, own, target)
    return Change(add, retire)


def wanted_count(rollout: Rollout, survey: ReplicaSurvey) -> int:
    """How many should serve: the minimum, and one where something that served would go without."""
    served = rollout.old is not None or survey.stand_ins
    return max(rollout.new.spec.min_replicas, 1 if served else 0)


def missing(own: ReplicaSurvey, target: int, most: int, beside: int) -> int:
    """How many to add now. While others serve that these replace, all together are one more than `most`, not more;
    one at least is always on its way."""
    counted = len(own.counted)
    lacking = target - counted
    if beside:
        coming = counted - len(own.of(ReplicaStatus.SERVING))
        lacking = min(lacking, max(most + 1 - counted - beside, 1 - coming))
    return max(0, min(lacking, ADDED_AT_ONCE))


def surplus(state: State, revision: Revision, own: ReplicaSurvey, target: int) -> list[SurveyedReplica]:
    """What to retire of those that count: above the target what never served, above the maximum all.

    The newest goes first.
    """
    newest_first = list(reversed(own.counted))
    unproven = [surveyed for surveyed in newest_first if surveyed.replica.id not in state.served]
    chosen = unproven[: max(0, len(newest_first) - target)]
    most = revision.spec.max_replicas
    if most:
        others = [surveyed for surveyed in newest_first if surveyed not in chosen]
        others.sort(key=lambda surveyed: surveyed.assessment.status is ReplicaStatus.SERVING)
        chosen += others[: max(0, len(others) - most)]
    return chosen


def _unproven(state: State, survey: ReplicaSurvey) -> list[SurveyedReplica]:
    """Tries that are still to come."""
    return [surveyed for surveyed in survey.of(ReplicaStatus.STARTING) if surveyed.replica.id not in state.served]


def _give_up(state: State, model: ModelView, revision: Revision, own: ReplicaSurvey, fault: Failure) -> Decision:
    recipe = fault.recipe if model.on_trial(revision, fault.recipe) else ""
    gone = own.of(ReplicaStatus.ENDED)
    gone += [each for each in _unproven(state, own) if not recipe or recipe in recipes_of(state, each.replica)]
    retire = tuple(surveyed.replica.id for surveyed in gone)
    reason = shortened(fault.reason)
    facts: tuple[Fact, ...] = (Unservable(revision=revision.number, reason=reason, recipe=recipe),)
    if retire:
        facts += (Scaled(revision=revision.number, retire=retire, why=f"unservable: {shortened(reason, QUOTED)}"),)
    what = model.name if len(model.specs) == 1 else f"revision {revision.number} of {model.name}"
    where = " in what it was to move to" if recipe else ""
    return _decision(model, facts, fault.cause, f"{what} is unservable{where}: {reason}")


def _scaled(
    state: State,
    model: ModelView,
    rollout: Rollout,
    survey: ReplicaSurvey,
    time: DecisionTime,
    new: Change,
    old: Change,
) -> Decision:
    """One commit: what is added of each revision, and all that goes."""
    facts: list[Fact] = []
    causes: list[Cause] = []
    retire = new.retire + old.retire
    number = model.next_number
    for revision, change in zip(rollout.revisions, (new, old), strict=False):
        own = survey.counting_for(revision, None) if revision is rollout.new else survey.counting_for(revision)
        gone = retire if revision is rollout.new else []
        if not change.add and not gone:
            continue
        target = wanted_count(rollout, survey) if revision is rollout.new else revision.least
        why, cause = _reason(model, own if change.add else survey, gone, change.add, target)
        avoid = _avoided(state, model, revision, survey, time) if change.add else []
        add = tuple(replica_id(model.id, each) for each in range(number, number + change.add))
        number += change.add
        retired = tuple(surveyed.replica.id for surveyed in gone)
        facts.append(Scaled(revision=revision.number, add=add, retire=retired, avoid=tuple(avoid), why=why))
        causes.append(cause)
    return _decision(model, tuple(facts), causes[0], "; ".join(fact.why for fact in facts if isinstance(fact, Scaled)))


def _avoided(
    state: State, model: ModelView, revision: Revision, survey: ReplicaSurvey, time: DecisionTime
) -> list[NodeId]:
    """Where the added ones must not go: an earlier one failed there, or an admin takes the model off."""
    marked = state.unload_deadlines.by_replica
    unloaded = {marked[surveyed.replica.id].node for surveyed in survey.all if surveyed.replica.id in marked}
    return sorted(unloaded | state.failures.recent(model, revision, time).keys())


def _reason(
    model: ModelView, survey: ReplicaSurvey, retire: Sequence[SurveyedReplica], add: int, target: int
) -> tuple[str, Cause]:
    """The sentence and the cause: what went wrong, else what now serves in its place, else the count."""
    if add:
        bad = survey.of(ReplicaStatus.ENDED) + survey.stand_ins
    else:
        bad = [surveyed for surveyed in retire if surveyed.assessment.status is ReplicaStatus.ENDED]
    for surveyed in bad:
        return surveyed.assessment.why, surveyed.assessment.cause or model.cause
    if add:
        return f"{target} wanted, {len(survey.counted)} there", model.cause
    runs = [run for surveyed in survey.of(ReplicaStatus.SERVING) for run in surveyed.replica.runs.values()]
    latest = max(runs, key=lambda run: run.sequence, default=None)
    cause = Cause(latest.correlation_id, latest.event_id) if latest is not None else model.cause
    whys = [why for surveyed in retire if (why := surveyed.assessment.why or _replaced(model, surveyed))]
    return (f"{whys[0]}; others serve" if whys else f"more than the {target} wanted"), cause


def _replaced(model: ModelView, surveyed: SurveyedReplica) -> str:
    """Why one of the kept revision goes; empty for what is of the new one."""
    new = model.current
    if surveyed.revision is None or surveyed.revision.runs_as(new):
        return ""
    return f"revision {new.number} replaces revision {surveyed.replica.revision}"


def _decision(model: ModelView, facts: tuple[Fact, ...], cause: Cause, why: str) -> Decision:
    aggregate = subjects.model(model.id)
    return Decision((Commit(aggregate, facts, Guard(aggregate, model.sequence), cause),), why)
