"""How many replicas of a model there should be, and which of those there are may go."""

from dataclasses import dataclass

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import RolledBack, Scaled, Unservable
from weft_contracts.ids import NodeId, replica_id
from weft_fleet import ModelView, Revision, is_elastic
from weft_requests import QUOTED, shortened

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.failures import Failure
from weft_reconciler.domain.giving_up import fault_of, recipes_of, without_progress
from weft_reconciler.domain.going_down_first import going_down_first
from weft_reconciler.domain.keep_score import keep_score
from weft_reconciler.domain.receipts import receipt_of
from weft_reconciler.domain.replica_counts import (
    ADDED_AT_ONCE,
    RETIRED_AT_ONCE,
    due_count,
    kept_count,
    missing,
    must_tell,
    wanted_count,
)
from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import ReplicaSurvey, SurveyedReplica, survey_replicas
from weft_reconciler.domain.rollout import Rollout, rollout_of
from weft_reconciler.domain.scaled_reason import no_room, reason_of
from weft_reconciler.domain.spread_rollout import nodes_of, replaced_there, stand_ins_of
from weft_reconciler.domain.state import State


@dataclass(frozen=True, slots=True)
class Change:
    """What one revision lacks and has too much of."""

    add: int
    retire: list[SurveyedReplica]
    first: SurveyedReplica | None = None
    """One of these that goes before another serves in its place."""


def reconcile(state: State, model: ModelView, time: DecisionTime) -> Decision | None:
    """What a model lacks or has too much of, or None when it stands as it should."""
    rollout = rollout_of(model)
    survey = survey_replicas(state, model, rollout, time)
    for revision in rollout.revisions:
        if revision.number not in model.given_up:
            own = survey.counting_for(revision)
            fault = fault_of(state, model, revision, own, time)
            if fault is None and revision is rollout.new and rollout.old is not None:
                fault = without_progress(state, model, own, time)
            if fault is not None:
                return _give_up(state, model, rollout, revision, own, fault, time)
    old = kept_change(state, model, rollout, survey, time)
    new = new_change(state, model, rollout, survey, old)
    retire = new.retire + old.retire
    if not new.add and not old.add and not retire and not must_tell(model, rollout, survey):
        failed = model.current.spec.spread_all and state.failures.recent(model, rollout.new, time)
        awaited = model.replacing and rollout.old is not None  # it may take too long
        if survey.settled and not failed and not awaited:  # where one failed, it is tried again once that is long ago
            state.dirty.pop(model.id, None)
        return None
    return _scaled(state, model, rollout, survey, time, new, old)


def kept_change(state: State, model: ModelView, rollout: Rollout, survey: ReplicaSurvey, time: DecisionTime) -> Change:
    """Of the revision that is kept: repaired to what the new one doesn't serve yet, and no more than that."""
    old = rollout.old
    if old is None:
        return Change(0, [])
    own, new = survey.counting_for(old), survey.counting_for(rollout.new)
    least = kept_count(model, old, survey)
    serving = least - len(new.of(ReplicaStatus.SERVING))
    over, stand_ins = own.of(ReplicaStatus.ENDED), own.stand_ins
    retire = over + stand_ins[max(0, serving - len(own.of(ReplicaStatus.SERVING))) :]
    goes_on = rollout.new.number not in model.given_up
    # Where one went first and the new one failed, the place is the kept one's again: new tries keep off it.
    failed = [each for each in new.of(ReplicaStatus.ENDED) if each.replica.members]
    may_miss = model.rules.max_unavailable if goes_on and not failed else 0
    add = 0
    if old.number not in model.given_up:
        # What of the new one starts again, or is awaited, has taken its place already.
        there = new.of(ReplicaStatus.SERVING, ReplicaStatus.UNKNOWN, ReplicaStatus.OUTGOING)
        there += [surveyed for surveyed in new.of(ReplicaStatus.STARTING) if surveyed.replica.id in state.served]
        add = max(0, min(least - may_miss - len(there) - len(own.counted), ADDED_AT_ONCE))
    first = None
    if not add and not own.of(ReplicaStatus.UNKNOWN):
        if old.spec.spread_all and rollout.new.spec.spread_all:
            over = replaced_there(own, new, serving)
        else:  # what serves comes first, then the oldest
            counted = sorted(own.counted, key=lambda surveyed: surveyed.assessment.status is not ReplicaStatus.SERVING)
            over = list(reversed(counted[max(0, serving) :]))
        retire += over
        if goes_on and not over:
            target = wanted_count(model, rollout, survey)
            first = going_down_first(state, model, rollout, survey, target, least, time)
            retire += [first] if first is not None else []
    return Change(add, retire, first)


def new_change(state: State, model: ModelView, rollout: Rollout, survey: ReplicaSurvey, old: Change) -> Change:
    """Of the revision that there should be in the end, and of those that it superseded."""
    new = rollout.new
    own = survey.counting_for(new, None)
    target = wanted_count(model, rollout, survey)
    most = target if rollout.old is None else max(target, kept_count(model, rollout.old, survey))
    stay = max(0, most - len(survey.of(ReplicaStatus.SERVING)))
    stand_ins = stand_ins_of(own, survey) if new.spec.spread_all else own.stand_ins
    retire = own.of(ReplicaStatus.ENDED) + stand_ins[stay:]
    if new.number in model.given_up:
        return Change(0, retire + _unproven(state, own))
    surge = max(1, model.rules.max_surge) if rollout.old is None else model.rules.max_surge
    beside = old.add + sum(surveyed.assessment.outdated for surveyed in stand_ins[:stay])
    if rollout.old is not None:
        there = survey.counting_for(rollout.old)
        beside += len(there.all) - len(old.retire)
    add = missing(own, target, most, beside, surge)
    if rollout.old is not None and any(each.replica.state == "unplaceable" for each in own.counted):
        add = 0  # where one has no place, another would have none either
    if not add and not own.of(ReplicaStatus.UNKNOWN):
        retire += surplus(state, model, own, target)
    return Change(add, retire)


def surplus(state: State, model: ModelView, own: ReplicaSurvey, target: int) -> list[SurveyedReplica]:
    """What to retire of those that count: above the target what never served, above the maximum all. The newest goes
    first.

    Where what there is to do said how many there should be: all above that, those that are least worth keeping first.
    """
    newest_first = list(reversed(own.counted))
    if model.current.spec.spread_all:  # each that has a place is on a node of its own that is to have one
        return [each for each in newest_first if not each.replica.members][: max(0, len(newest_first) - target)]
    if model.size is not None and is_elastic(model.current.spec):
        by_score = sorted(newest_first, key=lambda surveyed: keep_score(state.fleet, surveyed))
        return by_score[: max(0, len(by_score) - target)]
    unproven = [surveyed for surveyed in newest_first if surveyed.replica.id not in state.served]
    chosen = unproven[: max(0, len(newest_first) - target)]
    most = model.current.spec.max_replicas
    if most:
        others = [surveyed for surveyed in newest_first if surveyed not in chosen]
        others.sort(key=lambda surveyed: surveyed.assessment.status is ReplicaStatus.SERVING)
        chosen += others[: max(0, len(others) - most)]
    return chosen


def _unproven(state: State, survey: ReplicaSurvey) -> list[SurveyedReplica]:
    """Tries that are still to come."""
    return [surveyed for surveyed in survey.of(ReplicaStatus.STARTING) if surveyed.replica.id not in state.served]


def _give_up(
    state: State,
    model: ModelView,
    rollout: Rollout,
    revision: Revision,
    own: ReplicaSurvey,
    fault: Failure,
    time: DecisionTime,
) -> Decision:
    recipe = fault.recipe if model.on_trial(revision, fault.recipe) else ""
    gone = own.of(ReplicaStatus.ENDED)
    gone += [each for each in _unproven(state, own) if not recipe or recipe in recipes_of(state, each.replica)]
    retire = tuple(surveyed.replica.id for surveyed in gone[:RETIRED_AT_ONCE])
    reason, receipt = shortened(fault.reason), receipt_of(state, time)
    facts: tuple[Fact, ...] = (Unservable(revision=revision.number, reason=reason, recipe=recipe),)
    if rollout.old is not None and revision is rollout.new and not recipe:
        facts += (RolledBack(revision=revision.number, to=rollout.old.number, why=reason, receipt=receipt),)
    if retire:
        why = f"unservable: {shortened(reason, QUOTED)}"
        facts += (Scaled(revision=revision.number, retire=retire, why=why, receipt=receipt),)
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
    retire = (new.retire + old.retire)[:RETIRED_AT_ONCE]
    number = model.next_number
    for revision, change in zip(rollout.revisions, (new, old), strict=False):
        own = survey.counting_for(revision, None) if revision is rollout.new else survey.counting_for(revision)
        gone = retire if revision is rollout.new else []
        tells = revision is rollout.new and must_tell(model, rollout, survey)
        if not change.add and not gone and not tells:
            continue
        if revision is rollout.new:
            target, due = wanted_count(model, rollout, survey), due_count(model, rollout, survey)
        else:
            target = due = kept_count(model, revision, survey)
        why, cause = reason_of(model, own if change.add else survey, gone, change.add, target)
        if not change.add and not gone:
            why, cause = f"{due} of revision {revision.number} are to serve before it is established", model.cause
        if revision is rollout.new and old.first is not None:
            why = f"{why}; {old.first.replica.id} goes first: {no_room(model)}"
        avoid = _avoided(state, model, rollout, revision, survey, time) if change.add else []
        add = tuple(replica_id(model.id, each) for each in range(number, number + change.add))
        number += change.add
        retired = tuple(surveyed.replica.id for surveyed in gone)
        fact = Scaled(
            revision=revision.number,
            add=add,
            retire=retired,
            avoid=tuple(avoid),
            why=why,
            wanted=due,
            position=state.fleet.position,
            receipt=receipt_of(state, time),
        )
        facts.append(fact)
        causes.append(cause)
    return _decision(model, tuple(facts), causes[0], "; ".join(fact.why for fact in facts if isinstance(fact, Scaled)))


def _avoided(
    state: State,
    model: ModelView,
    rollout: Rollout,
    revision: Revision,
    survey: ReplicaSurvey,
    time: DecisionTime,
) -> list[NodeId]:
    """Where the added ones must not go: an earlier one failed there, or an admin takes the model off."""
    marked = state.unload_deadlines.by_replica
    unloaded = {marked[surveyed.replica.id].node for surveyed in survey.all if surveyed.replica.id in marked}
    # where each node has one, placement keeps those of one revision apart, and not those of others that run as it
    others = [each.replica for each in survey.counting_for(revision).counted if revision.spec.spread_all]
    beside = {member.node for each in others if each.revision != revision.number for member in each.members}
    if revision is rollout.old and rollout.new.spec.spread_all:  # there it would go again
        beside |= nodes_of(survey.counting_for(rollout.new).of(ReplicaStatus.SERVING))
    return sorted(unloaded | beside | state.failures.recent(model, revision, time).keys())


def _decision(model: ModelView, facts: tuple[Fact, ...], cause: Cause, why: str) -> Decision:
    aggregate = subjects.model(model.id)
    return Decision((Commit(aggregate, facts, Guard(aggregate, model.sequence), cause),), why)
