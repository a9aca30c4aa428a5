"""Aliases as the API shows them."""

from collections.abc import Callable

import weft_api as api
from weft_contracts.ids import ModelId
from weft_fleet import AliasView, ModelView

from weft_gateway.domain.model_state import ModelStanding

Stands = Callable[[ModelId], tuple[ModelView, ModelStanding] | None]
"""A model and how it stands; None for one that the log doesn't have."""


def alias_shape(view: AliasView, stands: Stands) -> api.Alias:
    """An alias as it is listed. A model that is gone stands there by its id, as deleted."""
    targets: list[api.AliasTarget] = []
    for target in view.targets:
        found = stands(target.model)
        state: api.ModelState = "deleted"
        name, reason, ready, wanted = str(target.model), None, 0, 0
        if found is not None:
            model, how = found
            name, state, reason, ready, wanted = model.name, how.state, how.reason, how.ready, how.wanted
        targets.append(
            {
                "model": name,
                "weight": target.weight,
                "state": state,
                "reason": reason,
                "ready": ready,
                "wanted": wanted,
            }
        )
    return {"name": view.name, "rule": view.rule, "targets": targets, "set_at": view.set_at}


def openai_alias(view: AliasView) -> api.OpenAIModel:
    """An alias as OpenAI lists models."""
    return {"id": view.name, "object": "model", "created": int(view.set_at), "owned_by": "weft"}


def openai_alias_detail(view: AliasView, stands: Stands) -> api.OpenAIAliasDetail:
    """OpenAI's shape and, under `weft`, the alias's models."""
    return {**openai_alias(view), "weft": alias_shape(view, stands)}
