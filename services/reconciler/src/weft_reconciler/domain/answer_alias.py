"""Aliases: set, set anew, removed. What an alias stands for is there when it is set, and stays while it is named."""

from weft_contracts import subjects
from weft_contracts.aliases import MOST_ALIASES
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.name import Aliased, Released
from weft_contracts.facts.request import AliasRemovalRequested, AliasRequested, DeleteRequested
from weft_contracts.ids import ModelId
from weft_fleet import AliasView, ModelView
from weft_fleet.alias_view import aliases_of
from weft_requests import PendingRequest

from weft_reconciler.domain.models_there import models_there
from weft_reconciler.domain.spec_faults import fault_of_name
from weft_reconciler.domain.state import State

_NAMED = 8
"""Names that a rejection lists."""


def set_alias(state: State, pending: PendingRequest, asked: AliasRequested) -> Decision | None:
    """The name stands for these models from here on. The same again changes nothing. None while a model that it names
    is about to go."""
    fault = fault_of_name(asked.name)
    if fault is not None:
        return pending.rejected(400, fault)
    models = [each.model for each in asked.targets]
    twice = next((id for id in models if models.count(id) > 1), None)
    if twice is not None:
        return pending.rejected(400, f"{_name(state, twice)} stands there twice: give each model once, with its weight")
    if state.fleet.model_named(asked.name) is not None:
        why = f"{asked.name} is a model, and a name is one thing: call the alias otherwise, or remove the model first"
        return pending.rejected(409, why)
    older = [each.asked for each in _older(state, pending)]
    if any(isinstance(other, DeleteRequested) and other.model in models for other in older):
        return None
    for id in models:
        model = state.fleet.models.get(id)
        if model is None or model.deleted:
            return pending.rejected(422, f"no model has the id {id}: {models_there(state.fleet)}")
    before = state.fleet.aliases.get(asked.name)
    if before is not None and (before.rule, before.targets) == (asked.rule, asked.targets):
        return pending.fulfilled(f"{asked.name} is so already", alias=asked.name)
    if before is None and len(state.fleet.aliases) >= MOST_ALIASES:
        return pending.rejected(409, f"there are {MOST_ALIASES} aliases already, as many as may be: remove one")
    aggregate = subjects.name("model", asked.name)
    fact = Aliased(name=asked.name, rule=asked.rule, targets=asked.targets)
    commit = Commit(aggregate, (fact,), Guard(aggregate, state.names.get(aggregate, 0)), pending.cause)
    return pending.fulfilled(f"{asked.name} is an alias", commit, alias=asked.name)


def remove_alias(state: State, pending: PendingRequest, asked: AliasRemovalRequested) -> Decision:
    """The name is free again; the models stay."""
    if asked.name not in state.fleet.aliases:
        return pending.rejected(404, f"there is no alias {asked.name[:128]}")
    aggregate = subjects.name("model", asked.name)
    commit = Commit(aggregate, (Released(),), Guard(aggregate, state.names.get(aggregate, 0)), pending.cause)
    return pending.fulfilled(f"the alias {asked.name} is removed", commit, alias=asked.name)


def fault_of_aliased(state: State, name: str) -> str | None:
    """Why no model can bear a name: it is an alias."""
    alias = state.fleet.aliases.get(name)
    if alias is None:
        return None
    return f"{name} is an alias of {_targets(state, alias)}: deploy under another name, or remove the alias first"


def is_being_named(state: State, pending: PendingRequest, model: ModelView) -> bool:
    """Whether a request that is older than a removal names the model: it is answered first.

    Each of the two writes what the other doesn't, so no guard parts them. Where two reconcilers decide at once, the
    alias goes on with the rest of its models.
    """
    older = [each.asked for each in _older(state, pending)]
    return any(
        isinstance(other, AliasRequested) and any(each.model == model.id for each in other.targets) for other in older
    )


def fault_of_named(state: State, model: ModelView) -> str | None:
    """Why a model can't go: aliases stand for it."""
    aliases = aliases_of(state.fleet.aliases, model.id)
    if not aliases:
        return None
    named, more = ", ".join(aliases[:_NAMED]), len(aliases) - _NAMED
    which = f"the alias {named} stands" if len(aliases) == 1 else f"the aliases {named} stand"
    others = f" (and {more} more)" if more > 0 else ""
    return f"{which}{others} for {model.name} among others: set them without it, or remove them first"


def _older(state: State, pending: PendingRequest) -> list[PendingRequest]:
    return [each for each in state.requests.waiting.values() if each.sequence < pending.sequence]


def _targets(state: State, alias: AliasView) -> str:
    return ", ".join(_name(state, each.model) for each in alias.targets)


def _name(state: State, id: ModelId) -> str:
    model = state.fleet.models.get(id)
    return model.name if model is not None else id
