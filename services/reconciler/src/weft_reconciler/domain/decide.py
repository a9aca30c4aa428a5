"""Puts the rules together: what the mesh lacks now, as decisions that don't tread on one another."""

from weft_contracts.commit import Decision
from weft_contracts.subjects import Aggregate

from weft_reconciler.domain.asking import ask_nodes
from weft_reconciler.domain.moment import Moment
from weft_reconciler.domain.pending import Pending
from weft_reconciler.domain.replicas import keep
from weft_reconciler.domain.requests import answer
from weft_reconciler.domain.state import State

AT_ONCE = 64
"""Decisions of one round; what is left over comes with the next."""


def decide(state: State, moment: Moment) -> list[Decision]:
    """What to append, given the log so far and the time.

    A decision that writes what an earlier one of the same round writes is left for the next round.
    """
    taken: list[Decision] = []
    written: set[Aggregate] = set()

    def take(decision: Decision | None) -> None:
        if decision is None or len(taken) == AT_ONCE:
            return
        guarded = {commit.guard.aggregate for commit in decision.commits if commit.guard is not None}
        if written.isdisjoint(guarded):
            written.update(guarded)
            taken.append(decision)

    undecided: list[Pending] = []
    for pending in state.requests.waiting.values():
        answered = answer(state, pending, moment)
        take(answered)
        if answered is None:
            undecided.append(pending)
    for decision in ask_nodes(state, undecided):
        take(decision)
    for id in tuple(state.restless):
        model = state.fleet.models.get(id)
        if model is None or model.deleted:
            del state.restless[id]
        else:
            take(keep(state, model, moment))
    return taken
