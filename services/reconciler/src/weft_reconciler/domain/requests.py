"""The answer to each request for change that this service owns."""

from typing import assert_never

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import Deleted, Retried, Scaled
from weft_contracts.facts.name import Released
from weft_contracts.facts.request import (
    DeleteRequested,
    DeployRequested,
    RetryRequested,
    TrialRequested,
    UnloadRequested,
)
from weft_contracts.ids import ModelId
from weft_placement.fleet import ModelView

from weft_reconciler.domain.deploy import answer_deploy
from weft_reconciler.domain.moment import Moment
from weft_reconciler.domain.pending import Pending
from weft_reconciler.domain.state import State
from weft_reconciler.domain.unloading import answer_unload


def answer(state: State, pending: Pending, moment: Moment) -> Decision | None:
    """Fulfil or reject a request; None while it has to wait."""
    match pending.wish:
        case DeployRequested() | TrialRequested() as wish:
            return answer_deploy(state, pending, wish, moment)
        case DeleteRequested(model=id):
            model = _live(state, id)
            return _delete(state, pending, model) if model is not None else _unknown(state, pending, id)
        case RetryRequested(model=id):
            model = _live(state, id)
            return _retry(pending, model) if model is not None else _unknown(state, pending, id)
        case UnloadRequested(model=id) as wish:
            model = _live(state, id)
            return answer_unload(state, pending, wish, model) if model is not None else _unknown(state, pending, id)
        case _:
            assert_never(pending.wish)


def _live(state: State, id: ModelId) -> ModelView | None:
    model = state.fleet.models.get(id)
    return model if model is not None and not model.deleted else None


def _unknown(state: State, pending: Pending, id: ModelId) -> Decision:
    names = sorted(model.name for model in state.fleet.models.values() if not model.deleted)
    there = f"there are {', '.join(names[:20])}" if names else "none is deployed"
    return pending.rejected(404, f"no model has the id {id}: {there}")


def _delete(state: State, pending: Pending, model: ModelView) -> Decision:
    """The model ends, its replicas are retired and its name is free, all at once."""
    wanted = tuple(id for id in model.replicas if state.fleet.replicas[id].wanted)
    facts: tuple[Fact, ...] = (Deleted(),)
    if wanted:
        facts += (Scaled(revision=model.revision, retire=wanted, why="the model was deleted"),)
    aggregate, name = subjects.model(model.id), subjects.name("model", model.name)
    commits = (
        Commit(aggregate, facts, Guard(aggregate, model.sequence), pending.cause),
        Commit(name, (Released(),), Guard(name, state.names.get(name, 0)), pending.cause),
        pending.fulfilled(model=model.id),
    )
    return Decision(commits, f"{model.name} is deleted")


def _retry(pending: Pending, model: ModelView) -> Decision:
    """A model that is not given up has nothing to lift: that is as good as done."""
    closing = pending.fulfilled(model=model.id, revision=str(model.revision))
    if model.unservable is None:
        return Decision((closing,), f"{model.name} is not given up")
    aggregate = subjects.model(model.id)
    retried = Commit(aggregate, (Retried(),), Guard(aggregate, model.sequence), pending.cause)
    return Decision((retried, closing), f"{model.name} is tried again")
