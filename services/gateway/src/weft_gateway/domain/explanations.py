"""Why a replica is where it is, and what a node could take, as the API shows it."""

from collections.abc import Iterable, Sequence

import weft_api as api
from weft_contracts.commit import Recorded
from weft_contracts.facts import run as run_facts
from weft_contracts.ids import ReplicaId, replica_id
from weft_contracts.source_keys import source_key
from weft_fleet import Fleet, ModelView, NodeView, ReplicaView
from weft_placement import ClaimUnknown, DryRun, PlannedFleet, chosen_policy
from weft_placement.claim_on_node import ModelAnswer, device_uses, model_answer
from weft_placement.explain import Explanation
from weft_placement.remedies import Remedy
from weft_placement.set_aside import SetAside

from weft_gateway.domain.model_state import ModelStanding
from weft_gateway.domain.shapes import size_shape

MOST_MODELS = 200
"""That one answer about a node tells of."""
_TROUBLES = 4
"""Of other replicas, the newest first."""
LAST_KEPT = 4
"""Replicas that are over of which the log is asked how they ended, where a model has none."""


def made_room(fleet: Fleet, replica: ReplicaView, outcome: str) -> str:
    """The outcome with what ended for the replica, or for what it ended."""
    if replica.evicted:
        return f"{outcome}; {replica.evicted_why}" if replica.evicted_why else outcome
    room = fleet.rooms.get(replica.id)
    if room is None:
        return outcome
    ends = (fleet.replicas[id] for id in room.evicted if id in fleet.replicas)
    named = [f"{each.id} of {fleet.models[each.model].name}" for each in ends if each.model in fleet.models]
    return f"{outcome}; {' and '.join(named)} made room for it, and {'ends' if len(named) == 1 else 'end'}"


def explanation_shape(found: Explanation, end: api.LastEnd | None, troubles: Sequence[str]) -> api.ReplicaExplanation:
    """One replica's."""
    return {
        "replica": found.replica,
        "model": found.model_name,
        "position": found.position,
        "policy": found.policy,
        "outcome": found.outcome,
        "nodes": [
            {
                "node": each.node,
                "name": each.name,
                "refusal": each.refusal,
                "rung": each.rung,
                "devices": list(each.devices),
                "bytes": list(each.bytes),
                "host": each.host,
                "score": each.score,
                "scores": dict(each.scores or {}),
                "chosen": each.chosen,
            }
            for each in found.answers
        ],
        "receipt": found.receipt.model_dump(mode="json") if found.receipt is not None else None,
        "recomputed": found.recomputed,
        "refusals": dict(found.refusals),
        "last_end": end,
        "troubles": list(troubles),
    }


def remedy_shape(found: Remedy) -> api.Remedy:
    """Changes after which a replica has a place."""
    return {
        "steps": [
            {
                "kind": step.kind,
                "what": step.what,
                "command": step.command,
                "node": step.node,
                "replicas": list(step.replicas),
                "arguments": dict(step.arguments),
            }
            for step in found.steps
        ],
        "node": found.node,
        "alike": found.alike,
    }


def dry_run_shape(found: DryRun) -> api.DryRun:
    """Where a deploy's replicas would go."""
    spec = found.spec
    return {
        "wanted": found.wanted,
        "staying": found.staying,
        "placed": found.placed,
        "fits": found.fits,
        "architecture": spec.weights.architecture,
        "weight_bytes": spec.weights.weight_bytes,
        "files": [{"name": file.name, "size": file.size, "checksum": file.checksum} for file in spec.files],
        "source": source_key(spec.source),
        "replicas": [explanation_shape(each, None, ()) for each in found.explanations],
    }


def stands_shape(model: ModelView, stands: ModelStanding) -> api.ModelStands:
    """How a model stands, with the bounds of its size."""
    spec = model.current.spec
    return {
        "state": stands.state,
        "reason": stands.reason or _why_none(model, stands),
        "ready": stands.ready,
        "wanted": stands.wanted,
        "least": spec.min_replicas,
        "most": spec.max_replicas or None,
        "all_nodes": spec.spread_all,
        "size": size_shape(model),
    }


def _why_none(model: ModelView, stands: ModelStanding) -> str | None:
    if stands.state == "empty":
        return "none is wanted until a request comes"
    return "a replica is wanted, and none is there yet" if stands.state == "placing" and not stands.wanted else None


def last_replicas(model: ModelView) -> list[ReplicaId]:
    """The last replicas that a model had, whether they are known any more or not; the newest last."""
    return [replica_id(model.id, n) for n in range(max(1, model.next_number - LAST_KEPT), model.next_number)]


def last_end(runs: Iterable[Recorded]) -> api.LastEnd | None:
    """The last end of a replica's process that nobody had asked for, by its runs' commits; None: there was none."""
    found: api.LastEnd | None = None
    for commit in runs:
        for fact in commit.facts:
            if isinstance(fact, run_facts.Stopped) and fact.why == "exited":
                found = {"reason": fact.detail, "last_lines": list(fact.last_lines)}
            elif isinstance(fact, run_facts.Failed):
                found = {"reason": fact.reason, "last_lines": list(fact.last_lines)}
    return found


def replicas_of(fleet: Fleet, text: str) -> list[ReplicaView]:
    """The replicas of a model by its name that are wanted: what answers, then what is on its way, then what failed; the
    newest first among equals."""
    model = fleet.model_named(text)
    if model is None:
        return []
    known = (each for id in model.replicas if (each := fleet.replicas.get(id)))
    own = sorted((each for each in known if each.wanted and not each.evicted), key=lambda each: -each.number)
    return sorted(own, key=_order)


def troubles(fleet: Fleet, name: str, others: Sequence[ReplicaView]) -> list[str]:
    """A line for each revision of a model that can't be served, for each upgrade of its engine that failed, and for
    some of its other replicas that something went wrong with."""
    model = fleet.model_named(name)
    if model is None:
        return []
    lines = [f"revision {number} of {name} can't be served: {why}" for number, why in model.given_up.items()]
    for number, refused in model.refused.items():
        lines += [f"revision {number} of {name} stays in the engine that it has: {why}" for why in refused.values()]
    return lines + [line for each in others if (line := _trouble(fleet, each))][:_TROUBLES]


def node_explanation(fleet: Fleet, node: NodeView, set_aside: SetAside) -> api.NodeExplanation:
    """What a node has, and for each model whether it could take one more replica now. Cost: one evaluation of the node
    for each of at most `MOST_MODELS` models; those that wait or lie there first. `set_aside`: nodes that nothing is
    placed on, and why."""
    held = fleet.assigned(node.id)
    live = [model for model in fleet.models.values() if not model.deleted]
    waiting: dict[str, int] = {}
    for id in fleet.waiting:
        waiting[fleet.replicas[id].model] = waiting.get(fleet.replicas[id].model, 0) + 1
    live.sort(key=lambda model: (-waiting.get(model.id, 0), -held.models.get(model.id, 0), model.name))
    planned, found = PlannedFleet(fleet), list[api.ModelFit]()
    for model in live[:MOST_MODELS]:
        try:
            answer = model_answer(planned, node, model, chosen_policy(fleet, model.spec))
        except ClaimUnknown as error:
            answer = ModelAnswer(str(error))
        if node.id in set_aside:
            answer = ModelAnswer(set_aside[node.id])
        found.append(
            {
                "model": model.name,
                "revision": model.revision,
                "holds": held.models.get(model.id, 0),
                "waiting": waiting.get(model.id, 0),
                "refusal": answer.refusal,
                "rung": answer.rung,
                "score": answer.score,
            }
        )
    return {
        "node": node.id,
        "name": node.name,
        "state": node.state,
        "position": fleet.position,
        "replicas": held.replicas,
        "devices": [
            {
                "index": each.index,
                "vendor": each.vendor,
                "memory": each.memory,
                "claimed": each.claimed,
                "others": each.others,
                "free": each.free,
            }
            for each in device_uses(node, held)
        ],
        "models": found,
        "more": max(len(live) - MOST_MODELS, 0),
    }


def _order(replica: ReplicaView) -> int:
    return {"ready": 0, "degraded": 0, "failed": 2, "unplaceable": 2, "lost": 2}.get(replica.state, 1)


def _trouble(fleet: Fleet, replica: ReplicaView) -> str:
    """What went wrong with a replica, in one line; empty where nothing did."""
    for run in replica.runs.values():
        if run.phase == "failed":
            node = fleet.nodes.get(run.node)
            where = node.name if node is not None else run.node
            return f"{replica.id} of revision {replica.revision} failed on {where}: {run.reason}"
    if replica.wanted and replica.state == "unplaceable" and replica.unplaceable is not None:
        return f"{replica.id} of revision {replica.revision} has no place: {replica.unplaceable.reason}"
    return ""
