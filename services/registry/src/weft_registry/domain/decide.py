"""The registry's one rule: what its state lacks, given what is known of the nodes now."""

from itertools import islice

from weft_contracts.commit import Decision
from weft_fleet import JoinLimits
from weft_requests import Round

from weft_registry.domain.admissions import NOBODY_YET, Admissions
from weft_registry.domain.answer_request import answer
from weft_registry.domain.approval import expired
from weft_registry.domain.cut_off import cut_off
from weft_registry.domain.drain import finished
from weft_registry.domain.failure_detector import Observations, Timeouts
from weft_registry.domain.founding import BootstrapToken, found
from weft_registry.domain.liveness import transitions
from weft_registry.domain.node_backends import superseded
from weft_registry.domain.state import RegistryState
from weft_registry.domain.upgrade import NOT_ASKED, ServicesHeard

REQUESTS_A_ROUND = 64
"""More would keep the judging of silence waiting."""


def decide(
    state: RegistryState,
    observations: Observations,
    now: float,
    *,
    timeouts: Timeouts,
    version: str,
    token: BootstrapToken | None = None,
    limits: JoinLimits = NOBODY_YET.limits,
    services: ServicesHeard = NOT_ASKED,
) -> list[Decision]:
    """Founding first, then who floods, then requests, then who is alive, then whose drain is done, then who waited for
    approval too long, then what no recipe names any more.

    Decisions of one round touch no aggregate twice. A request that can't be decided about holds up no other.
    """
    founding = found(state, version, token)
    if founding:
        return founding
    round = Round()
    for decision in cut_off(state, observations.floods):
        round.add(decision)
    bounds = {} if token is None or token.nodes is None else {token.id: token.nodes}
    admissions = Admissions(limits, bounds)
    for pending in islice(state.requests.waiting.values(), REQUESTS_A_ROUND):
        decision = answer(state, pending, now, admissions, services)
        if decision is not None and round.add(decision):
            admissions.note(decision)
    for decision in (*transitions(state, observations, timeouts), *finished(state), *expired(state, now, limits)):
        round.add(decision)
    for decision in superseded(state):
        round.add(decision)
    return round.decisions
