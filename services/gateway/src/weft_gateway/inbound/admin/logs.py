"""`GET /api/replicas/{id}/logs`: what a replica's process said, fetched from the node that it runs on."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from weft_contracts.ids import NodeId, ReplicaId
from weft_fleet import NodeView, ReplicaView
from weft_runtime.logs import get_logger

from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.openapi_document import EVENT_STREAM, PROBLEMS
from weft_gateway.outbound import node_http
from weft_gateway.outbound.node_http import NodeResponse, NodeUnreachable
from weft_gateway.projections.directory import Directory

FOLLOWERS = 64
"""Logs that are followed through this gateway at once."""
MAX_TAIL_BYTES = 4 << 20
"""Above what a node sends."""
_TAIL_WITHIN_S = 20.0
_SILENCE_S = 60.0
"""A node's stream says every 15 s that it lives."""
_log: Any = get_logger("weft.gateway.logs")
Secured = Callable[[NodeId], Mapping[str, Any] | None]
Lines = Annotated[int, Query(ge=0, le=10_000)]
Node = Annotated[str | None, Query(max_length=64)]


class ReplicaLogs:
    """Hands log tails through: nothing of them is kept here."""

    def __init__(self, directory: Directory, secured: Secured = lambda _: None) -> None:
        """`secured`: how a node is asked over TLS, see `node_http.get`; None of it: plainly."""
        self._directory = directory
        self._secured = secured
        self._followed: set[NodeResponse] = set()
        self.router = APIRouter(tags=["replicas"], responses=PROBLEMS)
        self.router.add_api_route(
            "/api/replicas/{id}/logs",
            self.read,
            methods=["GET"],
            response_class=PlainTextResponse,
            responses={200: EVENT_STREAM},
        )

    async def read(self, id: str, tail: Lines = 100, follow: bool = False, node: Node = None) -> Response:
        """The last `tail` lines as plain text; with `follow` as server-sent events, and then as they come.

        Of a replica that spans several nodes, its leader's; `node` names another member's, by id.
        """
        if follow and len(self._followed) >= FOLLOWERS:
            raise Refused(503, f"{FOLLOWERS} logs are followed already.", code="too_many_streams")
        replica = self._replica(id)
        where = self._node(replica, node)
        query = f"tail={tail}&follow={'true' if follow else 'false'}"
        try:
            host, port = where.addresses.host, where.addresses.http_port
            answer = await node_http.get(host, port, f"/logs/{replica.id}?{query}", self._secured(where.id))
        except NodeUnreachable as away:
            raise _away(where, away) from None
        if answer.status == 200 and follow:
            headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
            return StreamingResponse(self._handed_on(where, answer), media_type="text/event-stream", headers=headers)
        async with answer:
            try:
                body = await answer.body(MAX_TAIL_BYTES, _TAIL_WITHIN_S)
            except NodeUnreachable as away:
                raise _away(where, away) from None
        if answer.status != 200:
            raise _refusal(where, replica, answer.status, body)
        return Response(body, media_type="text/plain; charset=utf-8")

    async def _handed_on(self, where: NodeView, answer: NodeResponse) -> AsyncGenerator[bytes]:
        self._followed.add(answer)
        try:
            async for piece in answer.pieces(_SILENCE_S):
                yield piece
        except NodeUnreachable as away:
            detail = json.dumps({"detail": f"Node {where.name} {away}."})
            yield f"event: error\ndata: {detail}\n\n".encode()
        finally:
            self._followed.discard(answer)
            answer.close()

    def stop(self) -> None:
        """End all that is followed: the gateway stops."""
        for answer in self._followed:
            answer.close()

    def _replica(self, id: str) -> ReplicaView:
        found = self._directory.fleet.replicas.get(ReplicaId(id))
        if found is None:
            raise Refused(404, f"Replica {id[:64]!r} does not exist.", code="replica_not_found")
        return found

    def _node(self, replica: ReplicaView, id: str | None) -> NodeView:
        """The member's node whose log is meant. Raises Refused, 404."""
        members = [member.node for member in replica.members]
        if not members:
            why = f": {replica.unplaceable.reason}" if replica.unplaceable is not None else ""
            raise Refused(
                404, f"Replica {replica.id} has no log: it has not been placed on a node{why}.", code="no_log"
            )
        leader = replica.leader
        wanted = NodeId(id) if id is not None else leader.node if leader is not None else members[0]
        if wanted not in members:
            raise Refused(404, f"`node` is {id!r}; replica {replica.id} runs on {', '.join(members)}.", param="node")
        found = self._directory.fleet.nodes.get(wanted)
        if found is None or found.removed:
            raise Refused(404, f"Node {wanted}, on which {replica.id} ran, was removed.", code="no_log")
        return found


def _refusal(where: NodeView, replica: ReplicaView, status: int, body: bytes) -> Refused:
    match status:
        case 404:
            return Refused(404, f"Node {where.name} has no log of {replica.id}.", code="no_log")
        case 503:
            return Refused(503, f"Node {where.name} has too many followed logs already.", code="too_many_streams")
        case _:
            _log.warning("a node refused a log", node=where.id, status=status, said=body[:200].decode(errors="replace"))
            return Refused(502, f"Node {where.name} answered {status} for the log of {replica.id}.", code="bad_node")


def _away(where: NodeView, away: NodeUnreachable) -> Refused:
    return Refused(502, f"Node {where.name} {away}, and only it has this log; it is {where.state}.", code="node_away")
