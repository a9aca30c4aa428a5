"""A request to deploy, or to try it out: from what the nodes find on their disks to an accepted spec, or a
sentence why not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft_contracts import subjects
from weft_contracts.backends import Recipes
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.digest import revision_digest
from weft_contracts.engines import EngineProfile, Profiles
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.name import Claimed
from weft_contracts.facts.request import DeployRequested, TrialRequested
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import EngineName, ModelSpec, Weights
from weft_contracts.formats import unwritable
from weft_contracts.ids import ModelId, NodeId, model_id
from weft_contracts.source_faults import fault_of_files
from weft_fleet import NodeView
from weft_fleet.policies_named import policy_names
from weft_placement.fixed_layout import LayoutFault, fault_in_fleet, in_ids
from weft_placement.installable import obtainable
from weft_placement.layers import kept_weights, needs_layers
from weft_requests import QUOTED, PendingRequest, shortened

from weft_reconciler.domain.answer_alias import fault_of_aliased
from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.draft_faults import fault_of_draft, fault_of_drafts_fit
from weft_reconciler.domain.inspections import Inspection, InspectionKey, inspection_key, keys_beside, lora_keys
from weft_reconciler.domain.lora_faults import fault_of_fit, fault_of_loras, with_sizes
from weft_reconciler.domain.source_readers import (
    NOTHING_TOLD,
    as_found,
    fault_of_answer,
    is_fetched,
    is_sent,
    is_usable,
    readers,
    told_of,
    told_of_sent,
)
from weft_reconciler.domain.spec_faults import (
    fault_of_builtin,
    fault_of_claim,
    fault_of_context,
    fault_of_engine,
    fault_of_name,
    fault_of_policy,
    fault_of_secrets,
    fault_of_size,
    fault_of_spec,
    fault_of_task,
)
from weft_reconciler.domain.state import State


@dataclass(frozen=True, slots=True)
class Deploy:
    """One deploy request, or dry run, under decision."""

    pending: PendingRequest
    asked: DeployRequested | TrialRequested
    wait_s: float
    """Seconds that it waits in all."""
    may_wait: bool
    """Whether it may wait longer."""


def answer_deploy(
    state: State, pending: PendingRequest, asked: DeployRequested | TrialRequested, time: DecisionTime
) -> Decision | None:
    """Accept, reject, or None while nodes still look. Waits are bounded.

    A dry run is fulfilled where a deploy would be accepted, once every node has answered: whoever asked for it
    then finds in the log what it takes to compute where the replicas would go.
    """
    engines = state.fleet.engines
    fault = fault_of_name(asked.name) or fault_of_spec(asked.spec, engines)
    fault = fault or fault_of_loras(asked.spec, engines) or fault_of_draft(asked.spec, engines)
    if fault is not None:
        return pending.rejected(400, fault)
    why = fault_of_aliased(state, asked.name) or unwritable(asked, state.fleet.formats)
    if why is not None:
        return pending.rejected(409, why)
    fault = fault_of_secrets(asked.spec, state.fleet.secrets) or fault_of_policy(asked.spec, policy_names(state.fleet))
    if fault is not None:
        return pending.rejected(422, fault)
    try:
        layout = in_ids(state.fleet, asked.spec.layout)
    except LayoutFault as missing:
        return pending.rejected(422, str(missing))
    asked = asked.model_copy(update={"spec": asked.spec.model_copy(update={"layout": layout})})
    wait_s = time.timeouts.deploy_wait
    deploy = Deploy(pending, asked, wait_s, may_wait=time.waited(pending.at) < wait_s)
    nodes = inspected(state)
    if not nodes:
        return None if deploy.may_wait else pending.rejected(503, _nobody(state))
    reported = all(node.hardware is not None for node in nodes.values())
    there = [node for node in state.fleet.nodes.values() if not node.removed]
    fault = fault_of_engine(asked.spec, there, engines, state.fleet.recipes)
    if fault is not None:
        return pending.rejected(422, fault) if reported or not deploy.may_wait else None
    key = inspection_key(asked.spec)
    if is_sent(asked.spec):
        weights = kept_weights(asked.spec, asked.spec.weights, engines[asked.spec.engine])
        sent = asked.spec.model_copy(update={"weights": weights})
        return _accept(state, deploy, sent, told_of_sent(sent))
    if key is None:
        return _accept(state, deploy, _by_profile(asked.spec, engines[asked.spec.engine]))
    known = [name for node in nodes.values() for name in node.builtins]
    fault = fault_of_builtin(asked.spec, known)
    if fault is not None:
        return pending.rejected(422, fault) if reported or not deploy.may_wait else None
    able = by_engine(nodes, engines, state.fleet.recipes).get(key.engine)
    if able is None:
        return None if deploy.may_wait else pending.rejected(503, f"no healthy node has the engine {key.engine}")
    if is_fetched(asked.spec):
        waited = time.waited(pending.at)
        able = readers(state, pending, asked.spec, able, waited)
        wait_s = max(wait_s, time.timeouts.source_wait)
        deploy = replace(deploy, wait_s=wait_s, may_wait=waited < wait_s)
    return _by_inspections(state, deploy, key, able, reported=reported)


def _by_profile(spec: ModelSpec, profile: EngineProfile) -> ModelSpec:
    """A spec without files: no header says what it was made for, so the engine's profile does."""
    embeds = "embeddings" in profile.serves and "chat" not in profile.serves
    return spec.model_copy(update={"weights": Weights(format="none", embeds=embeds)})


def inspected(state: State) -> Mapping[NodeId, NodeView]:
    """The nodes that may be asked about files: in the mesh, approved and healthy."""
    return {
        id: node
        for id, node in state.fleet.nodes.items()
        if node.approved and node.presence == "healthy" and not node.removed
    }


def by_engine(
    nodes: Mapping[NodeId, NodeView], engines: Profiles, recipes: Recipes
) -> Mapping[EngineName, Mapping[NodeId, NodeView]]:
    """Which of them are asked whether an engine can load a file: those that have it or could install it. What another
    says of a source would stand for all engines.

    In the order of the fleet, by which a rejection names the first. Made anew for each look: 0.5 to 0.8 ms of CPU at
    1,000 nodes with three engines (`bench/reconciler.py`).
    """
    found: dict[EngineName, dict[NodeId, NodeView]] = {}
    for id, node in nodes.items():
        for backend in node.backends:
            found.setdefault(backend.engine, {})[id] = node
        for name, recipe in recipes.items() if node.installs is not None else ():
            if name in engines and id not in found.get(name, ()) and obtainable(node, engines[name], recipe):
                found.setdefault(name, {})[id] = node
    return found


def asked_since(pending: PendingRequest, spec: ModelSpec, engines: Profiles) -> int:
    """How new an answer must be: what is at a path or elsewhere may have changed since the last time, a built-in model
    with nothing beside it not."""
    changes = isinstance(spec.source, PathSource) or is_fetched(spec) or keys_beside(spec, engines)
    return pending.sequence if changes else 0


def _by_inspections(
    state: State, deploy: Deploy, key: InspectionKey, nodes: Mapping[NodeId, NodeView], *, reported: bool
) -> Decision | None:
    """Accept with what the first node found, or say what each node lacks once all have answered.

    `reported`: whether it is known of every healthy node which engines it has.
    """
    since = asked_since(deploy.pending, deploy.asked.spec, state.fleet.engines)
    beside = keys_beside(deploy.asked.spec, state.fleet.engines)
    inspections = {id: _last(state, (key, *beside), id, since) for id in nodes}
    found = [each for each in inspections.values() if each is not None and is_usable(deploy.asked.spec, each.answer)]
    silent = not reported or any(each is None or each.answer is None for each in inspections.values())
    awaited = deploy.may_wait and silent
    profile = state.fleet.engines[deploy.asked.spec.engine]
    told = [each for each in found if _tells_enough(deploy.asked.spec, each, profile)]
    # what an older worker read may not do for a claim: then another's answer is worth waiting for
    all_asked = isinstance(deploy.asked, TrialRequested) and not is_fetched(deploy.asked.spec)
    if (told or (found and not awaited)) and not (awaited and all_asked):
        first = min(told or found, key=lambda each: (each.sequence, each.id))
        assert isinstance(first.answer, FileFound)
        weights = kept_weights(deploy.asked.spec, first.answer.weights, profile)
        node = next(id for id, each in inspections.items() if each is first)
        many = len(lora_keys(deploy.asked.spec))
        loras = [_found(state, each, node, since) for each in beside[:many]]
        draft = next((_found(state, each, node, since).without_layers for each in beside[many:]), None)
        fault = fault_of_fit(deploy.asked.spec, weights, loras) or fault_of_drafts_fit(
            deploy.asked.spec, weights, draft
        )
        if fault is not None:
            return deploy.pending.rejected(422, fault)
        adapters = with_sizes(deploy.asked.spec.adapters, loras)
        spec = deploy.asked.spec.model_copy(update={"weights": weights, "adapters": adapters, "draft": draft})
        if not is_fetched(spec):
            return _accept(state, deploy, spec)
        fault = fault_of_files(first.answer.files)
        if fault is not None:
            return deploy.pending.rejected(422, f"{key.source}: {fault}")
        return _accept(state, deploy, as_found(spec, first.answer), told_of(first.answer))
    if awaited:
        return None
    reasons: dict[str, list[str]] = {}
    for id, inspection in list(inspections.items())[:_NAMED]:
        reasons.setdefault(_reason(deploy.asked.spec, inspection, deploy.wait_s), []).append(nodes[id].name)
    said = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    more = f"; and {len(inspections) - _NAMED} more nodes" if len(inspections) > _NAMED else ""
    return deploy.pending.rejected(422, f"no node can load {key.source} ({said}{more})")


def _last(state: State, keys: tuple[InspectionKey, ...], node: NodeId, since: int) -> Inspection | None:
    """A node's look at a model and what is beside it: at the model where all is there, else at what lacks first."""
    looks = [state.inspections.last(key, node, since) for key in keys]
    return next((each for each in looks if each is None or not isinstance(each.answer, FileFound)), looks[0])


def _found(state: State, key: InspectionKey, node: NodeId, since: int) -> Weights:
    """What a node found that has found it."""
    last = state.inspections.last(key, node, since)
    assert last is not None
    assert isinstance(last.answer, FileFound)
    return last.answer.weights


def _tells_enough(spec: ModelSpec, found: Inspection, profile: EngineProfile) -> bool:
    """Whether what a node read of the file does for the spec's claim, as far as single layers go."""
    assert isinstance(found.answer, FileFound)
    weights = found.answer.weights
    return bool(weights.layer_runs) or not needs_layers(spec, weights, profile)


_NAMED = 8
"""Nodes that a rejection names."""


def _reason(spec: ModelSpec, inspection: Inspection | None, wait_s: float) -> str:
    if inspection is None or inspection.answer is None:
        return f"no answer within {wait_s:.0f} s"
    if isinstance(inspection.answer, FileFound):
        return fault_of_answer(spec, inspection.answer) or "it found it"
    return shortened(inspection.answer.reason.rstrip("."), QUOTED)


def _nobody(state: State) -> str:
    pending = [node.name for node in state.fleet.nodes.values() if not node.approved and not node.removed]
    if pending:
        return f"no node is healthy: approve one of those that wait ({', '.join(sorted(pending)[:_NAMED])})"
    return "no node is healthy: start a worker, or see why those that joined are silent"


def _accept(state: State, deploy: Deploy, spec: ModelSpec, told: Mapping[str, str] = NOTHING_TOLD) -> Decision:
    """The first revision of a new model, the next one of the model that bears the name, or no change at all.

    What its weights now show to be impossible is rejected. `told`: what else the outcome says.
    """
    pending, name = deploy.pending, deploy.asked.name
    engines = state.fleet.engines
    fault = fault_of_size(spec) or fault_of_context(spec) or fault_of_task(spec, engines)
    fault = fault or fault_of_claim(spec, engines) or fault_in_fleet(spec, state.fleet, engines[spec.engine])
    if fault is not None:
        return pending.rejected(422, fault)
    digest = revision_digest(spec)
    model = state.fleet.model_named(name)
    if isinstance(deploy.asked, TrialRequested):
        same = model is not None and model.spec == spec and model.revision not in model.given_up
        revision = 1 if model is None else model.revision + (not same)
        return pending.fulfilled(f"{name} is tried out", revision=str(revision), **told)
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
        )
        return pending.fulfilled(f"{name} is a new model", *commits, model=id, revision="1", **told)
    if model.spec == spec and model.revision not in model.given_up:
        return pending.fulfilled(f"{name} is so already", model=model.id, revision=str(model.revision), **told)
    revision = model.revision + 1
    accepted = SpecAccepted(name=name, revision=revision, digest=digest, spec=spec)
    commit = _revision(deploy, model.id, model.sequence, accepted)
    return pending.fulfilled(f"revision {revision} of {name}", commit, model=model.id, revision=str(revision), **told)


def _revision(deploy: Deploy, id: ModelId, sequence: int, fact: Fact) -> Commit:
    aggregate = subjects.model(id)
    return Commit(aggregate, (fact,), Guard(aggregate, sequence), deploy.pending.cause)
