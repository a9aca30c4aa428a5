"""How many replicas of a model there should be, and which of those there are may go."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import Scaled, Unservable
from weft_contracts.ids import NodeId, replica_id
from weft_placement.fleet import ModelView, ReplicaView

from weft_reconciler.domain.eligible import eligible
from weft_reconciler.domain.failures import Failure, verdict
from weft_reconciler.domain.moment import Moment
from weft_reconciler.domain.sentence import QUOTED, short
from weft_reconciler.domain.standing import Judgement, Standing, judge
from weft_reconciler.domain.state import State

ADDED_AT_ONCE = 32
"""Replicas that one commit adds: as many as the scheduler places in one batch."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A wanted replica and how it stands."""

    replica: ReplicaView
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Roll:
    """A model's wanted replicas, oldest first."""

    all: tuple[Judged, ...]

    def of(self, *standings: Standing) -> list[Judged]:
        """Those that stand so."""
        return [judged for judged in self.all if judged.judgement.standing in standings]

    @property
    def at_rest(self) -> bool:
        """Whether only a new event can change how these stand; time, or the brake's end, can't."""
        return len(self.of(Standing.SERVES, Standing.COMING)) == len(self.all)

    @property
    def counted(self) -> list[Judged]:
        """Those that serve or may yet."""
        return self.of(Standing.SERVES, Standing.COMING, Standing.AWAITED)

    @property
    def keepers(self) -> list[Judged]:
        """Those that stay only until others serve in their place, the most useful first."""
        return self.of(Standing.LEAVING) + self.of(Standing.LOST)


def call_roll(state: State, model: ModelView, moment: Moment) -> Roll:
    """Judge every wanted replica of a model."""
    replicas = (state.fleet.replicas[id] for id in model.replicas)
    wanted = sorted((view for view in replicas if view.wanted), key=lambda view: view.number)
    return Roll(tuple(Judged(view, judge(state, model, view, moment)) for view in wanted))


def keep(state: State, model: ModelView, moment: Moment) -> Decision | None:
    """What a model lacks or has too much of, or None when it stands as it should."""
    roll = call_roll(state, model, moment)
    if model.unservable is None:
        fault = _fault(state, model, roll, moment)
        if fault is not None:
            return _give_up(state, model, roll, fault)
    target = wanted_count(model, roll)
    stay = max(0, target - len(roll.of(Standing.SERVES)))
    retire = roll.of(Standing.OVER) + roll.keepers[stay:]
    add = 0
    if model.unservable is not None:
        retire += _unproven(state, roll)
    else:
        add = missing(roll, target, roll.keepers[:stay])
        if not add and not roll.of(Standing.AWAITED):
            retire += surplus(state, model, roll, target)
    if not add and not retire:
        if roll.at_rest:
            state.restless.pop(model.id, None)
        return None
    why, cause = _reason(model, roll, retire, add, target)
    avoid = _avoided(state, model, roll, moment) if add else []
    numbers = range(model.next_number, model.next_number + add)
    scaled = Scaled(
        revision=model.revision,
        add=tuple(replica_id(model.id, number) for number in numbers),
        retire=tuple(judged.replica.id for judged in retire),
        avoid=tuple(avoid),
        why=why,
    )
    return _decision(model, (scaled,), cause, why)


def _avoided(state: State, model: ModelView, roll: Roll, moment: Moment) -> list[NodeId]:
    """Where the added ones must not go: an earlier one failed there, or an admin takes the model off."""
    marked = state.unloads.marked
    unloaded = {marked[judged.replica.id].node for judged in roll.all if judged.replica.id in marked}
    return sorted(unloaded | state.failures.recent(model.id, moment).keys())


def wanted_count(model: ModelView, roll: Roll) -> int:
    """How many should serve: the minimum, and one where something that served would go without."""
    return max(model.spec.min_replicas, 1 if roll.keepers else 0)


def missing(roll: Roll, target: int, staying: Sequence[Judged]) -> int:
    """How many to add now. While old revisions serve, all together are one more than the target, not more."""
    lacking = target - len(roll.counted)
    outdated = sum(judged.judgement.outdated for judged in staying)
    if outdated:
        lacking = min(lacking, target + 1 - len(roll.counted) - outdated)
    return max(0, min(lacking, ADDED_AT_ONCE))


def surplus(state: State, model: ModelView, roll: Roll, target: int) -> list[Judged]:
    """What to retire of those that count: above the target what never served, above the maximum all.

    The newest goes first.
    """
    newest_first = list(reversed(roll.counted))
    unproven = [judged for judged in newest_first if judged.replica.id not in state.served]
    chosen = unproven[: max(0, len(newest_first) - target)]
    most = model.spec.max_replicas
    if most:
        others = [judged for judged in newest_first if judged not in chosen]
        others.sort(key=lambda judged: judged.judgement.standing is Standing.SERVES)
        chosen += others[: max(0, len(others) - most)]
    return chosen


def _unproven(state: State, roll: Roll) -> list[Judged]:
    """Tries that are still to come."""
    return [judged for judged in roll.of(Standing.COMING) if judged.replica.id not in state.served]


def _fault(state: State, model: ModelView, roll: Roll, moment: Moment) -> Failure | None:
    """A failure that waits for an answer and should get no other than giving up."""
    if not any(run.phase == "failed" for judged in roll.all for run in judged.replica.runs.values()):
        return None
    failures = state.failures.recent(model.id, moment)
    if state.fleet.brake is not None:  # who is offline now may be no less able than before
        failures = {node: failure for node, failure in failures.items() if failure.permanent}
    return verdict(failures, len(eligible(state.fleet, model) | failures.keys()))


def _give_up(state: State, model: ModelView, roll: Roll, fault: Failure) -> Decision:
    retire = tuple(judged.replica.id for judged in roll.of(Standing.OVER) + _unproven(state, roll))
    reason = short(fault.reason)
    facts: tuple[Fact, ...] = (Unservable(revision=model.revision, reason=reason),)
    if retire:
        facts += (Scaled(revision=model.revision, retire=retire, why=f"unservable: {short(reason, QUOTED)}"),)
    return _decision(model, facts, fault.cause, f"{model.name} is unservable: {reason}")


def _reason(model: ModelView, roll: Roll, retire: Sequence[Judged], add: int, target: int) -> tuple[str, Cause]:
    """The sentence and the cause: what went wrong, else what now serves in its place, else the count."""
    if add:
        bad = roll.of(Standing.OVER) + roll.keepers
    else:
        bad = [judged for judged in retire if judged.judgement.standing is Standing.OVER]
    for judged in bad:
        return judged.judgement.why, judged.judgement.cause or model.cause
    if add:
        return f"{target} wanted, {len(roll.counted)} there", model.cause
    runs = [run for judged in roll.of(Standing.SERVES) for run in judged.replica.runs.values()]
    latest = max(runs, key=lambda run: run.sequence, default=None)
    cause = Cause(latest.correlation_id, latest.event_id) if latest is not None else model.cause
    whys = [judged.judgement.why for judged in retire if judged.judgement.why]
    return (f"{whys[0]}; others serve" if whys else f"more than the {target} wanted"), cause


def _decision(model: ModelView, facts: tuple[Fact, ...], cause: Cause, why: str) -> Decision:
    aggregate = subjects.model(model.id)
    return Decision((Commit(aggregate, facts, Guard(aggregate, model.sequence), cause),), why)
