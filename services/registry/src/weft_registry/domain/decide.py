"""The registry's one rule: what its state lacks, given what was heard."""

from weft_contracts.commit import Decision

from weft_registry.domain.founding import BootstrapToken, found
from weft_registry.domain.hearing import Patience
from weft_registry.domain.joining import answer
from weft_registry.domain.liveness import Signs, judge
from weft_registry.domain.state import RegistryState


def decide(
    state: RegistryState,
    signs: Signs,
    now: float,
    *,
    patience: Patience,
    version: str,
    token: BootstrapToken | None = None,
) -> list[Decision]:
    """Founding first, then one request, then who is alive.

    One request a round: the next may ask for the same name, and must see what became of this one.
    """
    decisions = found(state, version, token)
    if decisions:
        return decisions
    first = next(iter(state.pending.values()), None)
    if first is not None:
        decisions.append(answer(state, first, now))
    touched = {commit.aggregate for decision in decisions for commit in decision.commits}
    for decision in judge(state, signs, patience):
        if touched.isdisjoint(commit.aggregate for commit in decision.commits):
            decisions.append(decision)
    return decisions
