"""Whom to ask about which files: for deploys that wait, and every node about every live model's source."""

from collections.abc import Iterable, Iterator

from weft_contracts.commit import Commit, Decision
from weft_contracts.facts.request import DeployRequested, TrialRequested

from weft_reconciler.domain.deploy import asked_since, inspected
from weft_reconciler.domain.inspections import asking, question_of
from weft_reconciler.domain.pending import Pending
from weft_reconciler.domain.state import State

ASKED_AT_ONCE = 32
"""Questions in one batch."""


def ask_nodes(state: State, undecided: Iterable[Pending]) -> list[Decision]:
    """All questions that are open and were not asked yet; `undecided` are the requests that wait on."""
    unique = {commit.aggregate: commit for commit in _questions(state, undecided)}
    commits = list(unique.values())
    batches = (commits[at : at + ASKED_AT_ONCE] for at in range(0, len(commits), ASKED_AT_ONCE))
    return [Decision(tuple(batch), "what the nodes hold") for batch in batches]


def _questions(state: State, undecided: Iterable[Pending]) -> Iterator[Commit]:
    nodes = inspected(state)
    for pending in undecided:
        if isinstance(pending.wish, DeployRequested | TrialRequested):
            question = question_of(pending.wish.spec)
            since = asked_since(pending, pending.wish.spec)
            if question is not None:
                for node in state.inspections.missing(question, nodes, since):
                    yield asking(question, node, since, pending.cause)
    for model in state.fleet.models.values():
        question = None if model.deleted else question_of(model.spec)
        if question is None:
            continue
        for node in state.inspections.missing(question, nodes, 0):
            yield asking(question, node, 0, model.cause)
        retried = state.retried.get(model.id, 0)
        if retried:
            for node in state.inspections.refused(question, nodes, retried):
                yield asking(question, node, retried, model.cause)
