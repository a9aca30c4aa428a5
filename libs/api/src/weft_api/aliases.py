"""Answers about aliases: names that stand for several models. Times are seconds since the epoch."""

from typing_extensions import TypedDict
from weft_contracts.aliases import AliasRule

from weft_api.changes import Changed
from weft_api.models import ModelState, OpenAIModel


class AliasTarget(TypedDict):
    """A model that an alias stands for, by name, and how it stands: `ready` of its `wanted` replicas answer."""

    model: str
    weight: int
    state: ModelState
    reason: str | None
    ready: int
    wanted: int


class Alias(TypedDict):
    """An alias, with its models in the order in which they were given."""

    name: str
    rule: AliasRule
    targets: list[AliasTarget]
    set_at: float


class AliasPage(TypedDict):
    """Aliases by name, and the cursor of the next page."""

    items: list[Alias]
    next: str | None


class AliasChanged(Changed):
    """An alias that was set or removed."""

    alias: str


class OpenAIAliasDetail(OpenAIModel):
    """An alias in OpenAI's shape and, under `weft`, its models and how they stand."""

    weft: Alias
