"""The answer to the request to serve a revision of before again."""

from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard
from weft_contracts.facts.model import RolledBack, SpecAccepted
from weft_contracts.facts.request import RollbackRequested
from weft_fleet import ModelView, Revision
from weft_fleet.policies_named import policy_names
from weft_requests import PendingRequest

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.receipts import receipt_of
from weft_reconciler.domain.spec_faults import fault_of_policy, fault_of_secrets
from weft_reconciler.domain.state import State


def answer_rollback(
    state: State, pending: PendingRequest, asked: RollbackRequested, model: ModelView, time: DecisionTime
) -> Decision:
    """The next revision, with what the wanted one says, and with as many replicas as there are to be now.

    It is rolled out as any other; where that revision is still kept, nothing of it moves.
    """
    before = model.revision_before() if asked.to is None else _named(model, asked.to)
    if before is None:
        return pending.rejected(404 if asked.to is not None else 409, _absent(model, asked.to))
    newest, result = model.newest, {"model": model.id, "to": str(before.number)}
    if before.runs_as(newest) and newest.number not in model.given_up:
        return pending.fulfilled(
            f"{model.name} is as in revision {before.number} already", revision=str(newest.number), **result
        )
    spec = before.spec.model_copy(
        update={each: getattr(newest.spec, each) for each in ("min_replicas", "max_replicas", "spread_all")}
    )
    fault = fault_of_secrets(spec, state.fleet.secrets) or fault_of_policy(spec, policy_names(state.fleet))
    if spec.engine not in state.fleet.engines:
        fault = f"the mesh knows no engine {spec.engine} any more"
    if fault is not None:
        return pending.rejected(422, f"revision {before.number} can't be had again: {fault}")
    number, aggregate = model.revision + 1, subjects.model(model.id)
    accepted = SpecAccepted(name=model.name, revision=number, digest=before.digest, spec=spec)
    why = f"asked for: revision {number} is as revision {before.number}"
    rolled = RolledBack(revision=newest.number, to=before.number, why=why, receipt=receipt_of(state, time))
    commit = Commit(aggregate, (accepted, rolled), Guard(aggregate, model.sequence), pending.cause)
    said = f"revision {number} of {model.name} is as revision {before.number}"
    return pending.fulfilled(said, commit, revision=str(number), **result)


def _named(model: ModelView, number: int) -> Revision | None:
    return model.of(number) if number in model.specs else None


def _absent(model: ModelView, number: int | None) -> str:
    if number is None:
        return f"{model.name} has no revision before {model.revision} that ever served: name one with `to`"
    numbers = sorted(model.specs)
    there = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]} alone"
    return f"{model.name} has no revision {number}: it has {there}"
