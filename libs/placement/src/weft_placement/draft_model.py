"""What a draft model takes beside the model that it guesses for: weights, a cache for the same requests, a step.

As llama.cpp's log told it (`bench/claims.py`): a context as long for as many requests, steps of as many tokens, its
cache in 16 bits whatever type the model's has.
"""

from typing import Final

from weft_contracts.draft import draft_path
from weft_contracts.engines import EngineProfile, HeaderClaim
from weft_contracts.facts.values import ModelSpec

from weft_placement.cache import cache_bytes
from weft_placement.claim_unknown import ClaimUnknown
from weft_placement.loaded_weights import checked_weights, loaded_bytes, padded

_OF_THE_MODEL_ALONE: Final = ("cache_type_k", "cache_type_v")


def draft_spec(spec: ModelSpec, profile: EngineProfile) -> ModelSpec | None:
    """A spec's draft model as a spec of its own; None: it names none. Raises ClaimUnknown where nobody has read it, or
    what it says is not enough."""
    path, claim = draft_path(spec, profile), profile.claim
    if not path or not isinstance(claim, HeaderClaim):
        return None
    try:
        if spec.draft is None:
            raise ClaimUnknown(f"its memory can't be computed: no node's inspection has read {path}")
        weights = checked_weights(spec.draft)
    except ClaimUnknown as unknown:
        raise ClaimUnknown(f"engine_args.{claim.draft_argument}: {unknown}") from None
    arguments = {name: value for name, value in spec.engine_args.items() if name not in _OF_THE_MODEL_ALONE}
    return spec.model_copy(update={"weights": weights, "draft": None, "adapters": (), "engine_args": arguments})


def draft_bytes(draft: ModelSpec, profile: EngineProfile, formula: HeaderClaim) -> int:
    """Bytes of its weights and its cache, on the device where it lies."""
    return padded(loaded_bytes(draft, profile), formula) + cache_bytes(draft, profile)
