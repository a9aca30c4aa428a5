"""Which secrets a spec names, and who is to have them."""

from weft_contracts.facts.values import ModelSpec
from weft_contracts.secrets import secrets_in
from weft_contracts.source_keys import secret_of


def secrets_of(spec: ModelSpec) -> frozenset[str]:
    """All that its workers need: its engine's and its source's. An engine gets its own alone (`secrets_in`)."""
    source = secret_of(spec.source)
    named = secrets_in(spec.engine_args)
    return named | {source} if source else named
