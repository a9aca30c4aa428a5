"""An alias: a name that stands for several models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft_contracts.aliases import AliasRule, AliasTarget
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.name import Aliased, Claimed, Released
from weft_contracts.ids import ModelId


@dataclass(frozen=True, slots=True)
class AliasView:
    """An alias as it was set last."""

    name: str
    key: str
    """Of the name's aggregate, where a model's claim on it would stand."""
    rule: AliasRule
    targets: tuple[AliasTarget, ...]
    set_at: float
    """Seconds since the epoch."""


def evolve_aliases(
    aliases: Mapping[str, AliasView], recorded: Recorded, facts: Sequence[Fact]
) -> Mapping[str, AliasView]:
    """All aliases after a commit of a name. Whoever claims a name makes it no alias: it is one thing at a time."""
    key = recorded.aggregate.key
    for fact in facts:
        match fact:
            case Aliased(name=name):
                aliases = {**aliases, name: AliasView(name, key, fact.rule, fact.targets, recorded.at)}
            case Claimed() | Released() if aliases:
                aliases = {name: view for name, view in aliases.items() if view.key != key}
            case _:
                pass
    return aliases


def aliases_of(aliases: Mapping[str, AliasView], model: ModelId) -> list[str]:
    """Names of the aliases that stand for a model, among others or alone."""
    return sorted(view.name for view in aliases.values() if any(each.model == model for each in view.targets))
