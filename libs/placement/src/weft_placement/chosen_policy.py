"""By which policy a model's replicas are placed."""

from weft_contracts.facts.values import ModelSpec
from weft_contracts.policies import PlacementPolicy
from weft_fleet import Fleet

from weft_placement.policy import BALANCED, BUILTIN_POLICIES, Policy, policy_made_of


def chosen_policy(fleet: Fleet, spec: ModelSpec) -> Policy:
    """The one that the spec names, `spread` where its strategy says so; else the mesh's own. One that is there no more
    is the mesh's own, too."""
    asked = spec.policy or ("spread" if spec.strategy == "spread" else "")
    for name in (asked, fleet.policy):
        if (found := policy_named(fleet, name)) is not None:
            return found
    return BALANCED


def policy_named(fleet: Fleet, name: str) -> Policy | None:
    """The mesh's policy of this name; None: there is none."""
    if name in BUILTIN_POLICIES:
        return BUILTIN_POLICIES[name]
    told: PlacementPolicy | None = fleet.policies.get(name)
    return None if told is None else policy_made_of(told)
