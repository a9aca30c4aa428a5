"""What a secret's new value lifts: a model that was given up with the old one is tried again."""

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.model import Retried
from weft_contracts.spec_secrets import secrets_of
from weft_fleet import ModelView

from weft_reconciler.domain.state import State

SETTLE_S = 5.0
"""A failure so soon after a value was set may still be the old value's: a worker may not have had the new one."""


def lifted(state: State, model: ModelView) -> Decision | None:
    """A retry of a model that is given up, where a secret that it names was set since its last failure."""
    for number in model.given_up:
        revision = model.of(number)
        failure = state.failures.last(model, revision)
        for name in sorted(secrets_of(revision.spec)):
            secret = state.fleet.secrets.get(name)
            if secret is not None and failure is not None and secret.set_at > failure.at - SETTLE_S:
                aggregate = subjects.model(model.id)
                commit = Commit(aggregate, (Retried(),), Guard(aggregate, model.sequence), model.cause)
                return Decision((commit,), f"{model.name} is tried again: its secret {name} has a new value")
    return None
