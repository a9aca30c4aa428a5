"""`/api/node/heartbeat`: a sign of life over HTTP, of a machine that does not reach the log. Signed by its key."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from weft_api import Heartbeat, NodeHeard
from weft_contracts.ids import NodeId
from weft_runtime.logs import get_logger

from weft_gateway.domain.node_bodies import HeartbeatBody
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS, node_route_document
from weft_gateway.inbound.nodes.signatures import signing_node
from weft_gateway.inbound.nodes.untrusted_body import count_failure, read_body
from weft_gateway.projections.directory import Directory

COUNTS_S = 60.0
"""How long one is shown; an agent that tries to reach the log says so at each try, 10 to 25 s apart."""
_BODY = msgspec.json.Decoder(HeartbeatBody)
_log: Any = get_logger("weft.gateway.heartbeats")


class Heartbeats:
    """What people should know of nodes that try; nothing is decided by it. One entry a node, in memory alone."""

    def __init__(self, directory: Directory, now: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._now = now
        self._last: dict[NodeId, tuple[float, str]] = {}
        """When (monotonic) and why; the oldest first."""
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        answering(self.router)(
            "/api/node/heartbeat", self.beat, "POST", openapi_extra=node_route_document(HeartbeatBody)
        )

    async def beat(self, request: Request) -> Answer[NodeHeard]:
        """The node lives and does not reach the log, for the reason that it says. Answers how it stands."""
        body = await read_body(request, _BODY)
        node = signing_node(self._directory, body, "heartbeat", lambda: count_failure(request), self._now())
        known = self._last.pop(node.id, None)
        if known is None or known[1] != body.problem:
            _log.warning("a node does not reach the log", node=node.id, name=node.name, reason=body.problem)
        self._last[node.id] = (time.monotonic(), body.problem)
        self._forget_old()
        return Answer({"node": node.id, "state": node.state})

    def of(self, node: NodeId) -> Heartbeat | None:
        """The last one, if it is no older than a minute: its age in seconds, and why the log is not reached."""
        self._forget_old()
        last = self._last.get(node)
        return {"age_s": round(time.monotonic() - last[0], 1), "problem": last[1]} if last is not None else None

    def _forget_old(self) -> None:
        oldest_kept = time.monotonic() - COUNTS_S
        while self._last and next(iter(self._last.values()))[0] < oldest_kept:
            del self._last[next(iter(self._last))]
