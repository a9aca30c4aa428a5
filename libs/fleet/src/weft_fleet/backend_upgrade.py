"""That replicas of an engine were told to move to what its recipe says by then, and what they ran in before."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft_contracts.backends import BackendVariant
from weft_contracts.ids import ModelId

from weft_fleet.changed import changed
from weft_fleet.model_view import ModelView

RECIPES_KEPT = 256
"""Of the recipes that assignments named, so many of the latest are kept."""


@dataclass(frozen=True, slots=True)
class BackendUpgrade:
    """The last one of an engine."""

    superseded: tuple[str, ...]
    """Digests of the variants that are left behind."""
    sequence: int
    """Of its commit: what was placed later stays where it is."""


def after_use_of(
    used: Mapping[str, BackendVariant], digest: str, variant: BackendVariant | None
) -> Mapping[str, BackendVariant]:
    """The recipes that assignments named, by digest, after one more assignment: for those that go back to an earlier
    one when the next fails."""
    if variant is None or digest in used:
        return used
    return {**dict(list(used.items())[1 - RECIPES_KEPT :]), digest: variant}


def tried_again(models: Mapping[ModelId, ModelView], engine: str) -> dict[ModelId, ModelView]:
    """The models for which an upgrade of their engine lifts what was refused before."""
    return {
        id: changed(model, refused={})
        for id, model in models.items()
        if any(model.specs[number][1].engine == engine for number in model.refused)
    }
