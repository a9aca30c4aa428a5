"""The registry's one rule: what its state lacks, given what was heard."""

from itertools import islice

from weft_contracts.commit import Decision
from weft_contracts.subjects import Aggregate

from weft_registry.domain.answering import answer
from weft_registry.domain.draining import finished
from weft_registry.domain.founding import BootstrapToken, found
from weft_registry.domain.hearing import Patience, Signs
from weft_registry.domain.liveness import judge
from weft_registry.domain.state import RegistryState

REQUESTS_A_ROUND = 64
"""More would keep the judging of silence waiting."""


def decide(
    state: RegistryState,
    signs: Signs,
    now: float,
    *,
    patience: Patience,
    version: str,
    token: BootstrapToken | None = None,
) -> list[Decision]:
    """Founding first, then requests, then who is alive, then whose drain is done.

    Decisions of one round share no aggregate: who asks for what another was just given is answered next round,
    when what became of that is folded. A request that can't be decided about holds up no other.
    """
    decisions = found(state, version, token)
    if decisions:
        return decisions
    touched: set[Aggregate] = set()
    for pending in islice(state.pending.values(), REQUESTS_A_ROUND):
        _add(decisions, touched, answer(state, pending, now))
    for decision in (*judge(state, signs, patience), *finished(state)):
        _add(decisions, touched, decision)
    return decisions


def _add(decisions: list[Decision], touched: set[Aggregate], decision: Decision) -> None:
    aggregates = {commit.aggregate for commit in decision.commits}
    if touched.isdisjoint(aggregates):
        decisions.append(decision)
        touched |= aggregates
