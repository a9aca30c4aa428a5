"""The answer to each request for change that this service owns."""

from typing import assert_never

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.model import Deleted, Retried
from weft_contracts.facts.name import Released
from weft_contracts.facts.request import (
    ActivationRequested,
    AliasRemovalRequested,
    AliasRequested,
    DeleteRequested,
    DeployRequested,
    ReconcilerRequest,
    RetryRequested,
    RollbackRequested,
    SchedulingRequested,
    TrialRequested,
    UnloadRequested,
)
from weft_contracts.ids import ModelId
from weft_fleet import ModelView
from weft_requests import PendingRequest

from weft_reconciler.domain.answer_alias import fault_of_named, is_being_named, remove_alias, set_alias
from weft_reconciler.domain.answer_deploy import answer_deploy
from weft_reconciler.domain.answer_rollback import answer_rollback
from weft_reconciler.domain.answer_scheduling import answer_scheduling
from weft_reconciler.domain.answer_unload import answer_unload
from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.models_there import models_there
from weft_reconciler.domain.sizing import Demand, answer_activation
from weft_reconciler.domain.state import State


def answer(state: State, pending: PendingRequest, time: DecisionTime, demand: Demand) -> Decision | None:
    """Fulfil or reject a request; None while it has to wait."""
    asked = pending.asked
    assert isinstance(asked, ReconcilerRequest), f"the reconciler does not own {asked.type}"
    match asked:
        case DeployRequested() | TrialRequested():
            return answer_deploy(state, pending, asked, time)
        case DeleteRequested(model=id):
            model = _live(state, id)
            return _delete(state, pending, model) if model is not None else _unknown(state, pending, id)
        case RetryRequested(model=id):
            model = _live(state, id)
            return _retry(pending, model) if model is not None else _unknown(state, pending, id)
        case RollbackRequested(model=id):
            model = _live(state, id)
            if model is None:
                return _unknown(state, pending, id)
            return answer_rollback(state, pending, asked, model, time)
        case UnloadRequested(model=id):
            model = _live(state, id)
            return answer_unload(state, pending, asked, model) if model is not None else _unknown(state, pending, id)
        case SchedulingRequested(model=id):
            model = _live(state, id)
            return (
                answer_scheduling(state, pending, asked, model) if model is not None else _unknown(state, pending, id)
            )
        case ActivationRequested(model=id):
            model = _live(state, id)
            if model is None:
                return _unknown(state, pending, id)
            return answer_activation(state, pending, asked, model, time, demand)
        case AliasRequested():
            return set_alias(state, pending, asked)
        case AliasRemovalRequested():
            return remove_alias(state, pending, asked)
        case _:
            assert_never(asked)


def _live(state: State, id: ModelId) -> ModelView | None:
    model = state.fleet.models.get(id)
    return model if model is not None and not model.deleted else None


def _unknown(state: State, pending: PendingRequest, id: ModelId) -> Decision:
    return pending.rejected(404, f"no model has the id {id}: {models_there(state.fleet)}")


def _delete(state: State, pending: PendingRequest, model: ModelView) -> Decision | None:
    """The model ends, its replicas are retired by that and its name is free, all at once; not
    while an alias names it."""
    if is_being_named(state, pending, model):
        return None
    fault = fault_of_named(state, model)
    if fault is not None:
        return pending.rejected(409, fault)
    aggregate, name = subjects.model(model.id), subjects.name("model", model.name)
    commits = (
        Commit(aggregate, (Deleted(),), Guard(aggregate, model.sequence), pending.cause),
        Commit(name, (Released(),), Guard(name, state.names.get(name, 0)), pending.cause),
    )
    return pending.fulfilled(f"{model.name} is deleted", *commits, model=model.id)


def _retry(pending: PendingRequest, model: ModelView) -> Decision:
    """A model that is not given up has nothing to lift: that is as good as done."""
    result = {"model": model.id, "revision": str(model.revision)}
    if not model.given_up and not model.refused:
        return pending.fulfilled(f"{model.name} is not given up", **result)
    aggregate = subjects.model(model.id)
    retried = Commit(aggregate, (Retried(),), Guard(aggregate, model.sequence), pending.cause)
    return pending.fulfilled(f"{model.name} is tried again", retried, **result)
