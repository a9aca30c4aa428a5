"""The draft model of a spec: a small one that guesses tokens, which the model then checks many at once.

An argument of the engine names it by its path on the workers; which one, the engine's profile says.
"""

from weft_contracts.engines import EngineProfile, HeaderClaim
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.source_keys import source_key


def draft_path(spec: ModelSpec, profile: EngineProfile) -> str:
    """Where workers have it; empty: the spec names none, or the engine takes none."""
    claim = profile.claim
    if not isinstance(claim, HeaderClaim) or claim.draft_argument is None:
        return ""
    given = spec.engine_args.get(claim.draft_argument)
    return given if isinstance(given, str) else ""


def draft_key(spec: ModelSpec, profile: EngineProfile) -> str:
    """Its source as inspections name it; empty: there is none."""
    path = draft_path(spec, profile)
    return source_key(PathSource(path=path)) if path else ""
