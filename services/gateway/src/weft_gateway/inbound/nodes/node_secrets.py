"""`/api/node/secret`: a node fetches a secret that its assignments name, sealed to its own key."""

import base64
import time
from collections.abc import Awaitable, Callable

import msgspec
from fastapi import APIRouter, Request
from weft_api import NodeSecret, NodeWaits
from weft_contracts.ids import NodeId
from weft_contracts.secrets import UNREADABLE
from weft_fleet.secrets_named import node_names

from weft_gateway.domain.node_bodies import SecretPollBody
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.answer import Answer
from weft_gateway.inbound.http.openapi_document import PROBLEMS, node_route_document
from weft_gateway.inbound.nodes.signatures import signing_node
from weft_gateway.inbound.nodes.untrusted_body import count_failure, read_body
from weft_gateway.projections.directory import Directory

Copy = Callable[[NodeId, str, int], Awaitable[bytes | None]]
"""A node's copy of a version of a secret; None while there is none. Raises Refused."""
_BODY = msgspec.json.Decoder(SecretPollBody)


class NodeSecrets:
    """The route. What it hands out no gateway can open, and only what the log says that the node may have."""

    def __init__(self, directory: Directory, copy: Copy, now: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._copy = copy
        self._now = now
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        self.router.add_api_route(
            "/api/node/secret",
            self.secret,
            methods=["POST"],
            response_model=NodeSecret,
            responses={202: {"model": NodeWaits, "description": "The registry has not laid it out yet"}},
            openapi_extra=node_route_document(SecretPollBody),
        )

    async def secret(self, request: Request) -> Answer[NodeSecret] | Answer[NodeWaits]:
        """The secret as it is now, sealed to the node's key; `have` names the version that the node has already."""
        body = await read_body(request, _BODY)
        what = f"secret:{body.name}"
        node = signing_node(self._directory, body, what, lambda: count_failure(request), self._now())
        if node.cut_off is not None:
            raise Refused(423, f"Node {node.name!r} is cut off: {node.cut_off}.", code="node_cut_off")
        fleet = self._directory.fleet
        if not node.approved or not node_names(fleet, node.id, body.name):
            sentence = f"Nothing that node {node.name!r} is to run names the secret {body.name}."
            raise Refused(403, sentence, code="secret_not_assigned")
        view = fleet.secrets.get(body.name)
        if view is None:
            raise Refused(
                404, f"There is no secret {body.name}: weft secrets set {body.name}.", code="secret_not_found"
            )
        if body.have >= view.version:
            return Answer({"name": body.name, "version": view.version, "sealed": None}, cache_control="no-store")
        copy = await self._copy(node.id, body.name, view.version)
        if copy is None:
            return Answer({"state": "pending"}, 202)
        if copy == UNREADABLE:
            sentence = f"The registry can't open what was set for the secret {body.name}: set it anew."
            raise Refused(409, sentence, code="secret_unreadable")
        sealed = base64.b64encode(copy).decode()
        return Answer({"name": body.name, "version": view.version, "sealed": sealed}, cache_control="no-store")
