"""What the API shows of placement policies."""

from collections.abc import Sequence

import weft_api as api
from weft_contracts.policies import BUILTIN_NAMES
from weft_fleet import Fleet
from weft_fleet.policies_named import models_by_policy, policy_names
from weft_placement import Policy, policy_named


def policy_shapes(fleet: Fleet) -> list[api.Policy]:
    """All of them by name, those that Weft comes with among them. One look at every model."""
    named = models_by_policy(fleet)
    found = ((name, policy_named(fleet, name)) for name in sorted(policy_names(fleet)))
    return [_shape(policy, fleet.policy, named.get(name, [])) for name, policy in found if policy is not None]


def _shape(policy: Policy, default: str, models: Sequence[str]) -> api.Policy:
    return {
        "name": policy.name,
        "digest": policy.digest,
        "builtin": policy.name in BUILTIN_NAMES,
        "default": policy.name == default,
        "apart": policy.apart,
        "slots": policy.slots,
        "weights": {
            "idle": policy.idle,
            "binpack": policy.binpack,
            "spread": policy.spread,
            "snug": policy.snug,
            "files": policy.files,
            "devices": policy.devices,
        },
        "models": list(models),
    }
