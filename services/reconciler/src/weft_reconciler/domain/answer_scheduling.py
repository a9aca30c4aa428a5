"""The answer to the request for another number of replicas, or for other nodes."""

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.model import RolloutSet, ScalingSet, SpecAccepted
from weft_contracts.facts.request import SchedulingRequested
from weft_contracts.facts.rollout import RolloutRules
from weft_contracts.facts.values import ModelSpec
from weft_fleet import ModelView
from weft_requests import PendingRequest

from weft_reconciler.domain.spec_faults import fault_of_bounds, fault_of_selector, fault_of_size, fault_of_told_size
from weft_reconciler.domain.state import State


def answer_scheduling(
    state: State, pending: PendingRequest, asked: SchedulingRequested, model: ModelView
) -> Decision | None:
    """The newest spec with what was asked for in it, under the model's guard: what another changed meanwhile stays.

    The digest stays what it was, so nothing moves that the numbers don't end; another selector is rolled out. What
    changes nothing is fulfilled as it stands. None while an earlier one about the model waits: this one is judged
    beside what that changes.
    """
    if _earlier(state, pending, model):
        return None
    if asked.spread_all and _numbers(asked):
        return pending.rejected(400, "spread_all goes with neither min_replicas nor max_replicas: leave both out")
    if model.spec.spread_all and asked.spread_all is None and _numbers(asked):
        return pending.rejected(
            409, f"{model.name} is wanted on all nodes that match: say spread_all: false beside its numbers"
        )
    spec = model.spec.model_copy(update=_update(asked))
    fault = fault_of_bounds(spec) or fault_of_selector(spec) or fault_of_told_size(spec) or fault_of_size(spec)
    rules = model.rules.model_copy(update=_rules(asked))
    fault = fault or fault_of_rules(rules)
    if fault is not None:
        return pending.rejected(400, fault)
    revision, facts, said = model.revision, list[Fact](), list[str]()
    if spec != model.spec:
        revision += 1
        facts.append(SpecAccepted(name=model.name, revision=revision, digest=model.digest, spec=spec))
        said.append(f"revision {revision} of {model.name}: {_said(spec)}")
    if rules != model.rules:
        facts.append(RolloutSet(rules=rules))
        said.append(
            f"rollouts of {model.name} may have {rules.max_surge} more than should serve and"
            f" {rules.max_unavailable} fewer"
        )
    if asked.scaling is not None and asked.scaling != model.scaling:
        facts.append(ScalingSet(own=asked.scaling))
        told = ", ".join(f"{name} {value:g}" for name, value in asked.scaling.said.items())
        said.append(f"{model.name} is sized by {told or 'the figures of the mesh'}")
    result = {"model": model.id, "revision": str(revision)}
    if not facts:
        return pending.fulfilled(f"{model.name} is so already", **result)
    aggregate = subjects.model(model.id)
    commit = Commit(aggregate, tuple(facts), Guard(aggregate, model.sequence), pending.cause)
    return pending.fulfilled("; ".join(said), commit, **result)


def _earlier(state: State, pending: PendingRequest, model: ModelView) -> bool:
    first = (
        each.id
        for each in state.requests.waiting.values()
        if isinstance(each.asked, SchedulingRequested) and each.asked.model == model.id
    )
    return next(first, pending.id) != pending.id


def fault_of_rules(rules: RolloutRules) -> str | None:
    """Why nothing could ever be rolled out so."""
    if rules.max_surge or rules.max_unavailable:
        return None
    return "max_surge and max_unavailable are both 0, so that nothing could ever be replaced: let one of them be 1"


def _rules(asked: SchedulingRequested) -> dict[str, object]:
    said = {name: getattr(asked, name) for name in RolloutRules.model_fields}
    return {name: value for name, value in said.items() if value is not None}


def _numbers(asked: SchedulingRequested) -> bool:
    return asked.min_replicas is not None or asked.max_replicas is not None


def _update(asked: SchedulingRequested) -> dict[str, object]:
    """What is said of the spec; the numbers say nothing, and are 1, where each node that matches has one."""
    said = {
        "selector": asked.selector,
        "min_replicas": 1 if asked.spread_all else asked.min_replicas,
        "max_replicas": 1 if asked.spread_all else asked.max_replicas,
        "spread_all": asked.spread_all,
    }
    return {name: value for name, value in said.items() if value is not None}


def _said(spec: ModelSpec) -> str:
    if spec.spread_all:
        return "a replica on each node that matches"
    most = f"at most {spec.max_replicas}" if spec.max_replicas else "without an upper bound"
    return f"at least {spec.min_replicas} replicas, {most}"
