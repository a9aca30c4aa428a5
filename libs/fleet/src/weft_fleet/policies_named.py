"""Which placement policies there are, and which models name them."""

from weft_contracts.policies import BUILTIN_NAMES

from weft_fleet.live_revisions import live_revisions
from weft_fleet.tables import FleetTables


def policy_names(fleet: FleetTables) -> list[str]:
    """All that a model may name: those that Weft comes with, then those that admins told."""
    return [*BUILTIN_NAMES, *sorted(fleet.policies)]


def models_by_policy(fleet: FleetTables) -> dict[str, list[str]]:
    """By each policy that is named, names of models of which a live revision names it: the newest, the kept one, or
    one with replicas."""
    found: dict[str, set[str]] = {}
    for model in fleet.models.values():
        if model.deleted and not model.replicas:
            continue
        for number in live_revisions(fleet, model):
            if policy := model.specs[number][1].policy:
                found.setdefault(policy, set()).add(model.name)
    return {policy: sorted(models) for policy, models in found.items()}
