"""Nodes, models, replicas and requests as the admin API and the tables show them."""

from collections.abc import Mapping
from typing import Any

from weft_contracts.budget import budget_text
from weft_contracts.commit import Recorded
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.facts.values import Caps
from weft_placement.fleet import Held, ModelView, NodeView, ReplicaView, RunView

from weft_gateway.domain.ability import ability_of
from weft_gateway.domain.model_state import ModelStanding, trouble_of
from weft_gateway.domain.request_view import RequestView

Shape = dict[str, Any]


def node_shape(view: NodeView) -> Shape:
    """A node as it is listed."""
    return {
        "id": view.id,
        "name": view.name,
        "kind": view.kind,
        "state": view.state,
        "approved": view.approved,
        "addresses": view.addresses.model_dump(mode="json"),
        "labels": dict(view.labels),
        "hardware": view.hardware.model_dump(mode="json") if view.hardware else None,
        "backends": [backend.model_dump(mode="json") for backend in view.backends],
        "builtins": list(view.builtins),
        "pressure": {str(device): used for device, used in view.pressure.items()},
        "agent_version": view.agent_version,
        "cordoned": view.cordoned,
        "drain": drain_shape(view),
        "caps": caps_shape(view.caps),
        "reason": view.rejected,
    }


def drain_shape(view: NodeView) -> Shape | None:
    """Null while it doesn't drain; `unfinished` are requests that still ran at its end, by replica."""
    if view.drain is None:
        return None
    return {
        "why": view.drain.why,
        "by": view.drain.by,
        "deadline_s": view.drain.deadline_s,
        "ends_at": view.drain_ends_at,
        "leaves": view.drain.leaves,
        "unfinished": dict(view.unfinished),
    }


def node_detail(view: NodeView, held: Held) -> Shape:
    """A node with what runs on it and what that claims, in bytes by device."""
    return node_shape(view) | {
        "replicas": [id for id, assignment in held.assignments.items() if assignment.holds],
        "claims": {str(device): claimed for device, claimed in held.claims.items()},
        "files": {source: found.model_dump(mode="json") for source, found in view.files.items()},
        "own_labels": dict(view.own_labels),
        "set_labels": dict(view.set_labels),
        "own_caps": caps_shape(view.own_caps),
        "set_caps": caps_shape(view.set_caps),
    }


def labels_shape(view: NodeView) -> Shape:
    """What a node bears, what it says of itself, and what an admin set or (null) took away."""
    return {"labels": dict(view.labels), "own": dict(view.own_labels), "set": dict(view.set_labels)}


def caps_shape(caps: Caps) -> Shape:
    """Null is not said; a cap of 0 and a budget without text are no limit."""
    budget = caps.vram_budget
    return {
        "replicas_per_model": caps.replicas_per_model,
        "vram_budget": None if budget is None else budget_text(budget),
    }


def claim_shape(held: Held) -> Shape:
    """How many replicas hold something on a node, and how many bytes."""
    return {"replicas": held.replicas, "bytes": sum(held.claims.values())}


def model_shape(view: ModelView, stands: ModelStanding, created: float) -> Shape:
    """A model with its newest spec."""
    return {
        "id": view.id,
        "name": view.name,
        "state": stands.state,
        "reason": stands.reason,
        "ready": stands.ready,
        "wanted": stands.wanted,
        "revision": view.revision,
        "digest": view.digest,
        "spec": view.spec.model_dump(mode="json"),
        "created_at": created,
    }


def openai_model(view: ModelView, created: float) -> Shape:
    """A model as OpenAI lists it."""
    return {"id": view.name, "object": "model", "created": int(created), "owned_by": "weft"}


def openai_model_detail(view: ModelView, created: float, stands: ModelStanding) -> Shape:
    """OpenAI's shape and, under `weft`, how the model stands."""
    return openai_model(view, created) | {
        "weft": {
            "id": view.id,
            "state": stands.state,
            "reason": stands.reason,
            "ready": stands.ready,
            "wanted": stands.wanted,
            "engine": view.spec.engine,
            "ability": ability_of(view.spec),
            "context_tokens": view.spec.context_tokens,
            "revision": view.revision,
        }
    }


def replica_shape(view: ReplicaView, model_name: str, nodes: Mapping[Any, NodeView]) -> Shape:
    """A replica, with its leading run."""
    leader = view.leader
    run = view.runs.get(leader.node) if leader is not None else None
    node = nodes.get(leader.node) if leader is not None else None
    return {
        "id": view.id,
        "model": view.model,
        "model_name": model_name,
        "revision": view.revision,
        "digest": view.digest,
        "state": view.state,
        "wanted": view.wanted,
        "node": leader.node if leader is not None else None,
        "node_name": node.name if node is not None else None,
        "members": [member.model_dump(mode="json") for member in view.members],
        "epoch": view.epoch,
        "engine": run.engine if run is not None else None,
        "engine_version": run.engine_version if run is not None else "",
        "port": run.port if run is not None else None,
        "incarnation": run.incarnation if run is not None else None,
        "run_event": run.event_id if run is not None else None,
        "reason": _why(view, run),
        "added_at": view.added_at,
    }


def replica_line(view: ReplicaView, model_name: str, nodes: Mapping[Any, NodeView]) -> Shape:
    """A replica in one line, as the first page shows it; `bytes` is what it claims on all devices."""
    leader = view.leader
    node = nodes.get(leader.node) if leader is not None else None
    return {
        "id": view.id,
        "model": view.model,
        "model_name": model_name,
        "state": view.state,
        "wanted": view.wanted,
        "node_name": node.name if node is not None else None,
        "bytes": sum(device.bytes for member in view.members for device in member.devices),
        "reason": _why(view, view.runs.get(leader.node) if leader is not None else None),
    }


def _why(view: ReplicaView, run: RunView | None) -> str | None:
    if not view.wanted:
        return view.retire_why or None
    if view.placed is None and view.unplaceable is not None:
        return view.unplaceable.reason
    if run is None:
        return None
    return trouble_of(run) or run.reason or None


def request_shape(view: RequestView) -> Shape:
    """A request for change and its outcome."""
    outcome = view.outcome
    return {
        "id": view.id,
        "number": view.number,
        "type": view.asked.type,
        "state": view.state,
        "actor": view.actor,
        "correlation_id": view.correlation_id,
        "asked": view.asked.model_dump(mode="json", exclude={"type", "v"}),
        "at": view.at,
        "ended_at": view.ended_at,
        "result": dict(outcome.result) if isinstance(outcome, Fulfilled) else None,
        "status": outcome.status if isinstance(outcome, Rejected) else None,
        "reason": outcome.reason if isinstance(outcome, Rejected) else None,
    }


def event_shape(commit: Recorded) -> Shape:
    """A commit of the log."""
    return {
        "sequence": commit.sequence,
        "kind": commit.aggregate.kind,
        "key": commit.aggregate.key,
        "facts": [fact.model_dump(mode="json") for fact in commit.facts],
        "event_id": commit.event_id,
        "correlation_id": commit.correlation_id,
        "causation_id": commit.causation_id,
        "actor": commit.actor,
        "at": commit.at,
    }
