"""Nodes, models, replicas and requests as the admin API and the tables show them."""

from collections.abc import Mapping
from typing import Any, cast

import weft_api as api
from weft_contracts.commit import Recorded
from weft_contracts.facts.mesh import BrakeSet
from weft_contracts.facts.request import Fulfilled, Rejected
from weft_contracts.source_keys import source_key
from weft_fleet import ModelView, NodeAssignments, NodeView, ReplicaView, RunView

from weft_gateway.domain.ability import ability_of
from weft_gateway.domain.model_state import ModelStanding, trouble_of, trouble_of_ranks
from weft_gateway.domain.request_view import RequestView
from weft_gateway.domain.value_shapes import (
    addresses_shape,
    backend_shape,
    caps_shape,
    file_shape,
    hardware_shape,
    member_shape,
    spec_shape,
)


def node_shape(view: NodeView) -> api.Node:
    """A node as it is listed."""
    return {
        "id": view.id,
        "name": view.name,
        "kind": view.kind,
        "state": view.state,
        "approved": view.approved,
        "addresses": addresses_shape(view.addresses),
        "labels": dict(view.labels),
        "hardware": hardware_shape(view.hardware) if view.hardware else None,
        "backends": [backend_shape(backend) for backend in view.backends],
        "builtins": list(view.builtins),
        "pressure": {str(device): used for device, used in view.pressure.items()},
        "agent_version": view.agent_version,
        "cordoned": view.cordoned,
        "drain": drain_shape(view),
        "caps": caps_shape(view.caps),
        "reason": view.cut_off or view.rejected,
    }


def drain_shape(view: NodeView) -> api.Drain | None:
    """Null while it doesn't drain; `unfinished` are requests that still ran at its end, by replica."""
    if view.drain is None:
        return None
    return {
        "why": view.drain.why,
        "by": view.drain.by,
        "deadline_s": view.drain.deadline_s,
        "ends_at": view.drain_ends_at,
        "leaves": view.drain.leaves,
        "unfinished": {str(replica): left for replica, left in view.unfinished.items()},
    }


def node_detail(view: NodeView, held: NodeAssignments, heartbeat: api.Heartbeat | None) -> api.NodeDetail:
    """A node with what runs on it and what that claims, in bytes by device; `heartbeat`: its last one over HTTP."""
    return {
        **node_shape(view),
        "replicas": [id for id, assignment in held.assignments.items() if assignment.holds],
        "claims": {str(device): claimed for device, claimed in held.claims.items()},
        "files": {source: file_shape(found) for source, found in view.files.items()},
        "own_labels": dict(view.own_labels),
        "set_labels": dict(view.set_labels),
        "own_caps": caps_shape(view.own_caps),
        "set_caps": caps_shape(view.set_caps),
        "heartbeat": heartbeat,
    }


def labels_shape(view: NodeView) -> api.Labels:
    """What a node bears, what it says of itself, and what an admin set or (null) took away."""
    return {"labels": dict(view.labels), "own": dict(view.own_labels), "set": dict(view.set_labels)}


def claim_shape(held: NodeAssignments) -> api.Claim:
    """How many replicas hold something on a node, and how many bytes."""
    return {"replicas": held.replicas, "bytes": sum(held.claims.values())}


def model_shape(view: ModelView, stands: ModelStanding, created: float) -> api.Model:
    """A model with its newest spec; `serves` is the revision that is kept until the newest was ready as a whole."""
    return {
        "id": view.id,
        "name": view.name,
        "state": stands.state,
        "reason": stands.reason,
        "ready": stands.ready,
        "wanted": stands.wanted,
        "revision": view.revision,
        "serves": stands.serves,
        "failing": failing_shape(stands),
        "digest": view.digest,
        "source": source_key(view.spec.source),
        "spec": spec_shape(view.spec),
        "size": size_shape(view),
        "created_at": created,
    }


def size_shape(view: ModelView) -> api.Size | None:
    """How many replicas there should be by demand, and why; None where that was never changed."""
    size = view.size
    return None if size is None else {"replicas": size.replicas, "was": size.was, "why": size.why, "at": size.at}


def openai_model(view: ModelView, created: float) -> api.OpenAIModel:
    """A model as OpenAI lists it."""
    return {"id": view.name, "object": "model", "created": int(created), "owned_by": "weft"}


def openai_model_detail(
    view: ModelView, created: float, stands: ModelStanding, no_tokenizer: str
) -> api.OpenAIModelDetail:
    """OpenAI's shape and, under `weft`, how the model stands and what the revision that serves can do.

    `no_tokenizer`: why this gateway makes none of its token ids; empty: it can.
    """
    spec = view.serving.spec
    return {
        **openai_model(view, created),
        "weft": {
            "id": view.id,
            "state": stands.state,
            "reason": stands.reason,
            "ready": stands.ready,
            "wanted": stands.wanted,
            "engine": spec.engine,
            "ability": ability_of(spec),
            "context_tokens": spec.context_tokens,
            "revision": view.revision,
            "serves": stands.serves,
            "failing": failing_shape(stands),
            "no_tokenizer": no_tokenizer or None,
        },
    }


def failing_shape(stands: ModelStanding) -> api.Failing | None:
    """The revision that can't be served while another is kept, and why."""
    failing = stands.failing
    return None if failing is None else {"revision": failing.revision, "reason": failing.reason}


def replica_shape(view: ReplicaView, model_name: str, nodes: Mapping[Any, NodeView]) -> api.Replica:
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
        "members": [member_shape(member) for member in view.members],
        "epoch": view.epoch,
        "engine": run.engine if run is not None else None,
        "engine_version": run.engine_version if run is not None else "",
        "port": run.port if run is not None else None,
        "incarnation": run.incarnation if run is not None else None,
        "run_event": run.event_id if run is not None else None,
        "reason": _why(view, run),
        "added_at": view.added_at,
    }


def replica_line(view: ReplicaView, model_name: str, nodes: Mapping[Any, NodeView]) -> api.ReplicaLine:
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
        "members": [member_shape(member) for member in view.members],
        "bytes": sum(device.bytes for member in view.members for device in member.devices),
        "reason": _why(view, view.runs.get(leader.node) if leader is not None else None),
    }


def _why(view: ReplicaView, run: RunView | None) -> str | None:
    if not view.wanted:
        return view.retire_why or None
    if view.placed is None and view.unplaceable is not None:
        return view.unplaceable.reason
    followers = [each for each in view.runs.values() if each is not run]
    ended = next((why for each in followers if (why := trouble_of(each) or each.reason)), None)
    if run is None:
        return ended or trouble_of_ranks(view) or None
    return trouble_of(run) or run.reason or ended or trouble_of_ranks(view) or _excess_of(run)


def _excess_of(run: RunView) -> str | None:
    """That a run holds more memory than it claims, where it was said to."""
    if not run.used:
        return None
    gib = 1 << 30
    return f"it holds {run.used / gib:.2f} GiB of memory and claims {run.claimed / gib:.2f} GiB"


def brake_shape(brake: BrakeSet) -> api.Brake:
    """How many nodes fell silent at once."""
    return {"silent": brake.silent, "healthy_before": brake.healthy_before}


def request_shape(view: RequestView) -> api.ChangeRequest:
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


def event_shape(commit: Recorded) -> api.Commit:
    """A commit of the log."""
    return {
        "sequence": commit.sequence,
        "kind": commit.aggregate.kind,
        "key": commit.aggregate.key,
        "facts": [cast("api.Fact", fact.model_dump(mode="json")) for fact in commit.facts],
        "event_id": commit.event_id,
        "correlation_id": commit.correlation_id,
        "causation_id": commit.causation_id,
        "actor": commit.actor,
        "at": commit.at,
    }
