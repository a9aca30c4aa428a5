"""A model's size as a decision with its receipt, and the same computed again from a receipt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Decision, Guard
from weft_contracts.facts.model import Sized
from weft_contracts.facts.request import ActivationRequested
from weft_contracts.facts.sizing import DemandSeen, ScalingPolicy, SizingReceipt
from weft_contracts.ids import ModelId
from weft_fleet import ModelView
from weft_requests import PendingRequest

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.resize import Resize, resize
from weft_reconciler.domain.situation import may_be_sized, situation_of
from weft_reconciler.domain.state import State


@dataclass(frozen=True, slots=True)
class Demand:
    """What there is to do, by model, and the figures that sizes are decided by."""

    policy: ScalingPolicy = field(default_factory=ScalingPolicy)
    near: Sequence[ModelId] = ()
    """Models of which another size may be due."""
    seen: Callable[[ModelId], DemandSeen] = lambda model: DemandSeen()


def sized(state: State, model: ModelView, time: DecisionTime, demand: Demand) -> Decision | None:
    """Another size of a model, where what there is to do asks for one."""
    if not may_be_sized(model):
        return None
    commit = _sized(state, model, time, demand, demand.seen(model.id), model.cause)
    return None if commit is None else Decision((commit,), _why(model, commit))


def answer_activation(
    state: State,
    pending: PendingRequest,
    asked: ActivationRequested,
    model: ModelView,
    time: DecisionTime,
    demand: Demand,
) -> Decision:
    """A first replica of a model that sleeps. Of one that doesn't, there is nothing to do."""
    result = {"model": asked.model}
    if model.unservable is not None:
        return pending.rejected(409, f"{model.name} can't be served: {model.unservable}")
    if not may_be_sized(model):
        return pending.fulfilled(f"{model.name} has the replicas that its spec asks for", **result)
    seen = demand.seen(model.id).model_copy(update={"asked": pending.id})
    commit = _sized(state, model, time, demand, seen, pending.cause)
    if commit is None:
        return pending.fulfilled(f"{model.name} is awake", **result)
    return pending.fulfilled(_why(model, commit), commit, **result)


def computed_again(state: State, model: ModelView, receipt: SizingReceipt) -> Resize | None:
    """What a receipt's figures come to. `state`: the log folded up to the receipt's position."""
    return resize(situation_of(state, model, receipt.decided_at), receipt.seen, receipt.policy)


def _sized(
    state: State, model: ModelView, time: DecisionTime, demand: Demand, seen: DemandSeen, cause: Cause
) -> Commit | None:
    policy = model.scaling.over(demand.policy)
    receipt = SizingReceipt(
        position=state.fleet.position, decided_at=time.now, seed=time.seed, policy=policy, seen=seen
    )
    found = computed_again(state, model, receipt)
    if found is None:
        return None
    was = situation_of(state, model, time.now).size
    aggregate = subjects.model(model.id)
    fact = Sized(replicas=found.replicas, was=was, places=found.places, why=found.why, receipt=receipt)
    return Commit(aggregate, (fact,), Guard(aggregate, model.sequence), cause)


def _why(model: ModelView, commit: Commit) -> str:
    fact = commit.facts[0]
    assert isinstance(fact, Sized)
    return f"{model.name} goes from {fact.was} to {fact.replicas}: {fact.why}"
