"""What a node is to have of engines ahead of need, and what it is to have no more: folded alike by all who ask."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from weft_contracts.backends.recipe import BackendVariant
from weft_contracts.facts.machine import InstallFailed
from weft_contracts.facts.node import BackendRetired, BackendWanted
from weft_contracts.facts.values import InstalledBackend


@dataclass(frozen=True)
class BackendWishes:
    """One node's. Keys of `wanted` and `faults` are `<engine>/<vendor>`."""

    wanted: Mapping[str, BackendWanted] = field(default_factory=dict[str, BackendWanted])
    faults: Mapping[str, InstallFailed] = field(default_factory=dict[str, InstallFailed])
    """Why what is wanted could not be installed."""
    retired: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Environments, by name, that are to go; whether as soon as nothing uses them."""


NO_WISHES = BackendWishes()


def wish_key(engine: str, vendor: str) -> str:
    """Of one engine for one vendor's devices."""
    return f"{engine}/{vendor}"


def after_wanted(wishes: BackendWishes, fact: BackendWanted, there: Iterable[InstalledBackend]) -> BackendWishes:
    """Something is wanted: it, and what lies there of it, is not to go."""
    key = wish_key(fact.engine, fact.variant.vendor)
    faults = {name: fault for name, fault in wishes.faults.items() if name != key}
    wanted = replace(wishes, wanted={**wishes.wanted, key: fact}, faults=faults)
    return after_use(wanted, fact.variant, there)


def after_use(wishes: BackendWishes, variant: BackendVariant, there: Iterable[InstalledBackend]) -> BackendWishes:
    """A replica is to run in what this variant makes."""
    if not wishes.retired:
        return wishes
    kept = {each.name for each in there if each.recipe == variant.digest}
    return replace(wishes, retired={name: at_once for name, at_once in wishes.retired.items() if name not in kept})


def after_retired(wishes: BackendWishes, fact: BackendRetired) -> BackendWishes:
    """Environments are to go, and with `lifts` the engine is wanted no more."""
    retired = {**wishes.retired, **dict.fromkeys(fact.environments, fact.at_once)}
    if not fact.lifts:
        return replace(wishes, retired=retired)
    prefix = wish_key(fact.engine, "")
    return BackendWishes(
        {key: wanted for key, wanted in wishes.wanted.items() if not key.startswith(prefix)},
        {key: fault for key, fault in wishes.faults.items() if not key.startswith(prefix)},
        retired,
    )


def after_report(wishes: BackendWishes, there: Iterable[InstalledBackend]) -> BackendWishes:
    """The node said what it has: what is there has not failed, and what is gone needs no removal."""
    if not wishes.retired and not wishes.faults:
        return wishes
    found = list(there)
    names, made = {each.name for each in found}, {each.recipe for each in found}
    return replace(
        wishes,
        retired={name: at_once for name, at_once in wishes.retired.items() if name in names},
        faults={key: fault for key, fault in wishes.faults.items() if fault.recipe not in made},
    )


def after_fault(wishes: BackendWishes, fact: InstallFailed) -> BackendWishes:
    """Something that is wanted could not be installed; of what is wanted no more nothing is remembered."""
    key = wish_key(fact.engine, fact.vendor)
    wanted = wishes.wanted.get(key)
    if wanted is None or wanted.variant.digest != fact.recipe:
        return wishes
    return replace(wishes, faults={**wishes.faults, key: fact})
