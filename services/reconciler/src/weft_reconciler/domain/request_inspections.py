"""Which nodes to ask to inspect which files: for deploys that wait, and every node that has the engine for
every live model's source, where nodes have it and don't fetch it."""

from collections.abc import Iterable, Iterator

from weft_contracts.commit import Commit, Decision
from weft_contracts.engines import Profiles
from weft_contracts.facts.request import DeployRequested, TrialRequested
from weft_fleet import ModelView
from weft_requests import PendingRequest

from weft_reconciler.domain.answer_deploy import asked_since, by_engine, inspected
from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.inspections import InspectionKey, inspection_commit, inspection_key, keys_beside
from weft_reconciler.domain.source_readers import is_fetched, readers
from weft_reconciler.domain.state import State

INSPECTIONS_A_BATCH = 32
"""Inspections that one batch asks for."""


def request_inspections(state: State, undecided: Iterable[PendingRequest], time: DecisionTime) -> list[Decision]:
    """All inspections that are wanted and were not asked for yet; `undecided` are the requests that wait for them."""
    unique = {commit.aggregate: commit for commit in _inspections(state, undecided, time)}
    commits = list(unique.values())
    batches = (commits[at : at + INSPECTIONS_A_BATCH] for at in range(0, len(commits), INSPECTIONS_A_BATCH))
    return [Decision(tuple(batch), "what the nodes hold") for batch in batches]


def _inspections(state: State, undecided: Iterable[PendingRequest], time: DecisionTime) -> Iterator[Commit]:
    nodes = by_engine(inspected(state), state.fleet.engines, state.fleet.recipes)
    for pending in undecided:
        if isinstance(pending.asked, DeployRequested | TrialRequested):
            key = inspection_key(pending.asked.spec)
            since = asked_since(pending, pending.asked.spec, state.fleet.engines)
            for wanted in (key, *keys_beside(pending.asked.spec, state.fleet.engines)) if key is not None else ():
                able = nodes.get(wanted.engine, {})
                if wanted is key and is_fetched(pending.asked.spec):
                    able = readers(state, pending, pending.asked.spec, able, time.waited(pending.at))
                for node in state.inspections.missing(wanted, able, since):
                    yield inspection_commit(wanted, node, since, pending.cause, state.fleet.engines)
    for model in state.fleet.models.values():
        retried = state.retried.get(model.id, 0)
        for key in () if model.deleted else _sources(model, state.fleet.engines):
            able = nodes.get(key.engine, {})
            for node in state.inspections.missing(key, able, 0):
                yield inspection_commit(key, node, 0, model.cause, state.fleet.engines)
            if retried:
                for node in state.inspections.refused(key, able, retried):
                    yield inspection_commit(key, node, retried, model.cause, state.fleet.engines)


def _sources(model: ModelView, engines: Profiles) -> Iterator[InspectionKey]:
    """What the newest revision and the kept one need inspected; often the same."""
    kept = model.kept if model.replacing else None
    specs = [model.spec] if kept is None else [model.spec, kept.spec]
    own = (None if is_fetched(spec) else inspection_key(spec) for spec in specs)
    keys = [*filter(None, own), *(key for spec in specs for key in keys_beside(spec, engines))]
    yield from dict.fromkeys(keys)
