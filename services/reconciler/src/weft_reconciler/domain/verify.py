"""Every decision of a log about how many replicas there are, computed again: from its receipt and the log up to the
receipt's position it must come out the same. Whoever changed a receipt, or a fact that it rests on, is told.

Cost: one fold of the log, and each decision made once more.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import Deleted, RolledBack, Scaled, Sized
from weft_contracts.facts.request import RollbackRequested
from weft_contracts.facts.rollout import ReconcilingReceipt
from weft_contracts.ids import ModelId
from weft_fleet import ModelView

from weft_reconciler.domain.answer_request import answer
from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.receipts import time_of
from weft_reconciler.domain.replicas import reconcile
from weft_reconciler.domain.resize import Resize
from weft_reconciler.domain.situation import situation_of
from weft_reconciler.domain.sizing import Demand, computed_again
from weft_reconciler.domain.state import State


@dataclass(slots=True)
class Verified:
    """How many decisions of each kind there were, and those that don't come out again."""

    decisions: Counter[str] = field(default_factory=Counter[str])
    """`scaled`, `sized`, `rolled_back`: what stands in the log with a receipt."""
    mismatches: list[str] = field(default_factory=list[str])
    """Sentences for people."""


def verify(log: Iterable[Recorded]) -> Verified:
    """Compute every `scaled`, `sized` and `rolled_back` of a whole log again. What was written before there were
    receipts is passed over."""
    commits, found, state = list(log), Verified(), State()
    waiting: defaultdict[int, list[Recorded]] = defaultdict(list)
    for commit in commits:
        if (position := _position(commit)) is not None:
            waiting[position].append(commit)
    for commit in commits:
        state.apply(commit)
        for decided in waiting.pop(commit.sequence, ()):
            _look(state, decided, found)
    found.mismatches += [
        f"{left.aggregate} at {left.sequence}: its receipt names a position that the log doesn't have"
        for decided in waiting.values()
        for left in decided
    ]
    return found


def _position(commit: Recorded) -> int | None:
    """Of the receipt of a commit's first fact that has one; None: it has none."""
    if commit.aggregate.kind != "model" or any(isinstance(fact, Deleted) for fact in commit.facts):
        return None  # beside a deletion services of before named all replicas that it retires
    for fact in commit.facts:
        if isinstance(fact, Sized):
            return fact.receipt.position
        if (receipt := _receipt(fact)) is not None:
            return receipt.position
    return None


def _receipt(fact: Fact) -> ReconcilingReceipt | None:
    return fact.receipt if isinstance(fact, Scaled | RolledBack) else None


def _look(state: State, commit: Recorded, found: Verified) -> None:
    found.decisions.update(fact.type for fact in commit.facts if isinstance(fact, Scaled | Sized | RolledBack))
    model = state.fleet.models.get(ModelId(commit.aggregate.key))
    what = "its model wasn't there at its receipt's position" if model is None else _differs(state, model, commit)
    if what is not None:
        found.mismatches.append(f"{commit.aggregate} at {commit.sequence}: {what}")


def _differs(state: State, model: ModelView, commit: Recorded) -> str | None:
    """How a commit comes out other than it was; None: it is the same."""
    for fact in commit.facts:
        if isinstance(fact, Sized):
            was = situation_of(state, model, fact.receipt.decided_at).size
            again = computed_again(state, model, fact.receipt)
            told = Resize(fact.replicas, fact.places, fact.why)
            return None if (again, was) == (told, fact.was) else f"{again} from {was}, and the log says {told}"
    receipt = next(each for fact in commit.facts if (each := _receipt(fact)) is not None)
    time = time_of(receipt)
    decided = list(_decided(state, model, time))
    if commit.facts in decided:
        return None
    return f"its receipt comes to {decided}, and the log says {commit.facts}"[:2000]


def _decided(state: State, model: ModelView, time: DecisionTime) -> Iterator[tuple[Fact, ...]]:
    """What may be said of a model now: by the rules of its replicas, and to whoever asked."""
    decisions = [reconcile(state, model, time)]
    for pending in tuple(state.requests.waiting.values()):
        asked = pending.asked
        if isinstance(asked, RollbackRequested) and asked.model == model.id:
            decisions.append(answer(state, pending, time, Demand()))
    for decision in decisions:
        for commit in () if decision is None else decision.commits:
            if commit.aggregate.kind == "model":
                yield tuple(commit.facts)
