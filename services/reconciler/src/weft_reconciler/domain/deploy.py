"""A request to deploy, or to try it out: from what the nodes find on their disks to an accepted spec, or a
sentence why not."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.digest import revision_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.name import Claimed
from weft_contracts.facts.request import DeployRequested, TrialRequested
from weft_contracts.facts.values import ModelSpec, PathSource
from weft_contracts.ids import ModelId, NodeId, model_id
from weft_placement.fleet import NodeView

from weft_reconciler.domain.inspections import Ask, Question, question_of
from weft_reconciler.domain.moment import Moment
from weft_reconciler.domain.pending import Pending
from weft_reconciler.domain.sentence import QUOTED, short
from weft_reconciler.domain.spec_faults import (
    fault_of_builtin,
    fault_of_claim,
    fault_of_context,
    fault_of_engine,
    fault_of_name,
    fault_of_spec,
)
from weft_reconciler.domain.state import State


@dataclass(frozen=True, slots=True)
class Deploy:
    """One deploy request, or trial, under decision."""

    pending: Pending
    wish: DeployRequested | TrialRequested
    patience: float
    """Seconds that it waits in all."""
    patient: bool
    """Whether it may wait longer."""


def answer_deploy(
    state: State, pending: Pending, wish: DeployRequested | TrialRequested, moment: Moment
) -> Decision | None:
    """Accept, reject, or None while nodes still look. Waits are bounded.

    A trial is fulfilled where a deploy would be accepted, once every node has answered: whoever asked for it
    then finds in the log what it takes to compute where the replicas would go.
    """
    fault = fault_of_name(wish.name) or fault_of_spec(wish.spec)
    if fault is not None:
        return pending.rejected(400, fault)
    patience = moment.limits.deploy_wait
    deploy = Deploy(pending, wish, patience, patient=moment.waited(pending.at) < patience)
    nodes = inspected(state)
    if not nodes:
        return None if deploy.patient else pending.rejected(503, _nobody(state))
    fault = fault_of_engine(wish.spec, [node for node in state.fleet.nodes.values() if not node.removed])
    if fault is not None:
        reported = all(node.hardware is not None for node in nodes.values())
        return pending.rejected(422, fault) if reported or not deploy.patient else None
    question = question_of(wish.spec)
    if question is None:
        return _accept(state, deploy, wish.spec)
    known = [name for node in nodes.values() for name in node.builtins]
    fault = fault_of_builtin(wish.spec, known)
    if fault is not None:
        reported = all(node.hardware is not None for node in nodes.values())
        return pending.rejected(422, fault) if reported or not deploy.patient else None
    return _weigh(state, deploy, question, nodes)


def inspected(state: State) -> Mapping[NodeId, NodeView]:
    """The nodes that are asked about files: in the mesh, approved and heard."""
    return {
        id: node
        for id, node in state.fleet.nodes.items()
        if node.approved and node.presence == "healthy" and not node.removed
    }


def asked_since(pending: Pending, spec: ModelSpec) -> int:
    """How new an answer must be: a path's file may have changed since the last time, a built-in one not."""
    return pending.sequence if isinstance(spec.source, PathSource) else 0


def _weigh(state: State, deploy: Deploy, question: Question, nodes: Mapping[NodeId, NodeView]) -> Decision | None:
    """Accept with what the first node found, or say what each node lacks once all have answered."""
    since = asked_since(deploy.pending, deploy.wish.spec)
    asks = {id: state.inspections.last(question, id, since) for id in nodes}
    found = [ask for ask in asks.values() if ask is not None and isinstance(ask.answer, FileFound)]
    awaited = deploy.patient and any(ask is None or ask.answer is None for ask in asks.values())
    if found and not (awaited and isinstance(deploy.wish, TrialRequested)):
        first = min(found, key=lambda ask: (ask.sequence, ask.id))
        assert isinstance(first.answer, FileFound)
        weights = first.answer.weights
        spec = deploy.wish.spec.model_copy(update={"weights": weights})
        return _accept(state, deploy, spec)
    if awaited:
        return None
    reasons = "; ".join(f"{nodes[id].name}: {_reason(ask, deploy.patience)}" for id, ask in list(asks.items())[:_NAMED])
    more = f"; and {len(asks) - _NAMED} more nodes" if len(asks) > _NAMED else ""
    return deploy.pending.rejected(422, f"no node can load {question.source} ({reasons}{more})")


_NAMED = 8
"""Nodes that a rejection names."""


def _reason(ask: Ask | None, patience: float) -> str:
    if ask is None or ask.answer is None:
        return f"no answer within {patience:.0f} s"
    assert not isinstance(ask.answer, FileFound)
    return short(ask.answer.reason.rstrip("."), QUOTED)


def _nobody(state: State) -> str:
    pending = [node.name for node in state.fleet.nodes.values() if not node.approved and not node.removed]
    if pending:
        return f"no node is healthy: approve one of those that wait ({', '.join(sorted(pending)[:_NAMED])})"
    return "no node is healthy: start a worker, or see why those that joined are silent"


def _accept(state: State, deploy: Deploy, spec: ModelSpec) -> Decision:
    """The first revision of a new model, the next one of the model that bears the name, or no change at all.

    What its weights now show to be impossible is rejected.
    """
    pending, name = deploy.pending, deploy.wish.name
    fault = fault_of_context(spec) or fault_of_claim(spec)
    if fault is not None:
        return pending.rejected(422, fault)
    digest = revision_digest(spec)
    model = state.fleet.model_named(name)
    if isinstance(deploy.wish, TrialRequested):
        same = model is not None and model.spec == spec and model.unservable is None
        revision = 1 if model is None else model.revision + (not same)
        return Decision((pending.fulfilled(revision=str(revision)),), f"{name} is tried out")
    if model is None:
        id = model_id(f"model of {pending.id}".encode())
        claim = subjects.name("model", name)
        commits = (
            _revision(deploy, id, 0, SpecAccepted(name=name, revision=1, digest=digest, spec=spec)),
            Commit(
                claim,
                (Claimed(name=name, owner=id),),
                Guard(claim, state.names.get(claim, 0)),
                pending.cause,
            ),
            pending.fulfilled(model=id, revision="1"),
        )
        return Decision(commits, f"{name} is a new model")
    if model.spec == spec and model.unservable is None:
        closing = pending.fulfilled(model=model.id, revision=str(model.revision))
        return Decision((closing,), f"{name} is so already")
    revision = model.revision + 1
    accepted = SpecAccepted(name=name, revision=revision, digest=digest, spec=spec)
    commits = (
        _revision(deploy, model.id, model.sequence, accepted),
        pending.fulfilled(model=model.id, revision=str(revision)),
    )
    return Decision(commits, f"revision {revision} of {name}")


def _revision(deploy: Deploy, id: ModelId, sequence: int, fact: Fact) -> Commit:
    aggregate = subjects.model(id)
    return Commit(aggregate, (fact,), Guard(aggregate, sequence), deploy.pending.cause)
