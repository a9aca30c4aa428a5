"""Puts the rules together: what the mesh lacks now, as decisions that don't tread on one another."""

from weft_contracts.commit import Decision
from weft_requests import PendingRequest, Round

from weft_reconciler.domain.answer_request import answer
from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.new_secrets import lifted
from weft_reconciler.domain.replicas import reconcile
from weft_reconciler.domain.request_inspections import request_inspections
from weft_reconciler.domain.sizing import Demand, sized
from weft_reconciler.domain.state import State

AT_ONCE = 64
"""Decisions of one round; what is left over comes with the next."""
NO_DEMAND = Demand()


def decide(state: State, time: DecisionTime, demand: Demand = NO_DEMAND) -> list[Decision]:
    """What to append, given the log so far and the time. Decisions of one round touch no aggregate twice."""
    round = Round(AT_ONCE)
    undecided: list[PendingRequest] = []
    for pending in state.requests.waiting.values():
        answered = answer(state, pending, time, demand)
        if answered is None:
            undecided.append(pending)
        else:
            round.add(answered)
    for decision in request_inspections(state, undecided, time):
        round.add(decision)
    for id in tuple(state.dirty):
        model = state.fleet.models.get(id)
        if model is None or model.deleted:
            del state.dirty[id]
        else:
            decision = lifted(state, model) or reconcile(state, model, time)
            if decision is not None:
                round.add(decision)
    for id in demand.near:
        model = state.fleet.models.get(id)
        if model is not None and (decision := sized(state, model, time, demand)) is not None:
            round.add(decision)
    return round.decisions
