"""`/api/node/register` and `/api/node/credential`: how a machine joins. They check for themselves who asks."""

import base64
import binascii
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from weft_contracts.facts.request import JoinRequested
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId

from weft_gateway.domain.buckets import Buckets
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import CredentialBody, RegisterBody
from weft_gateway.inbound.admin.documented import PROBLEMS
from weft_gateway.outbound.changes import away
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.tokens import Tokens

NONCE_S = 300.0
"""How far a node's clock may be off."""
Credential = Callable[[NodeId], Awaitable[bytes | None]]
"""A node's credential as the registry laid it out; None while there is none. Any error: the log is away."""


class Joining:
    """The two routes of a machine that is not in the mesh yet."""

    def __init__(
        self,
        directory: Directory,
        tokens: Tokens,
        asking: Asking,
        credential: Credential,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory
        self._tokens = tokens
        self._asking = asking
        self._credential = credential
        self._now = now
        self._failures = Buckets(size=10, every=2.0)
        self._joins = Buckets(size=6, every=10.0)
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        self.router.add_api_route("/api/node/register", self.register, methods=["POST"], status_code=202)
        self.router.add_api_route("/api/node/credential", self.credential, methods=["POST"])

    async def register(self, request: Request, body: RegisterBody) -> JSONResponse:
        """Ask to join, with a token. Answers 202 and the node's id; its credential is polled for."""
        from weft_servers import nkey

        try:
            token = self._tokens.check(body.token, self._now())
            nkey.expect_role(body.public_key, nkey.Role.USER)
        except nkey.BadKey as error:
            raise Refused(400, f"`public_key` is not a user key: {error}.", param="public_key") from None
        except Refused:
            self._failed(request)
            raise
        wait = self._joins.wait(body.public_key, time.monotonic())
        if wait:
            raise _too_often(wait)
        self._joins.spend(body.public_key, time.monotonic())
        fact = JoinRequested(
            token=token,
            name=body.name,
            public_key=body.public_key,
            addresses=Addresses.model_validate(body.addresses.model_dump()),
            labels=body.labels,
            caps=body.caps.caps(),
        )
        return done(await self._asking.ask(request, fact), 202)

    async def credential(self, request: Request, body: CredentialBody) -> Response:
        """A node's poll: 200 with its credential, 202 until it is approved and the registry laid one out."""
        from weft_servers import nkey

        node = self._directory.fleet.nodes.get(NodeId(body.node))
        if node is None:
            self._failed(request)
            raise Refused(404, f"Node {body.node!r} is not known here; register it.", code="node_not_found")
        off = abs(self._now() - int(body.nonce))
        if off > NONCE_S:
            raise Refused(
                401, f"The nonce is {off:.0f} s away from this clock; set the node's clock.", code="stale_nonce"
            )
        signed = f"weft-credential:{body.node}:{body.nonce}".encode()
        if not nkey.signed_by(node.public_key, signed, _bytes(body.signature)):
            self._failed(request)
            raise Refused(401, "The signature is not the node's over this nonce.", code="bad_signature")
        if node.removed:
            raise Refused(403, f"Node {node.name!r} was removed from the mesh.", code="node_removed")
        if node.rejected is not None:
            raise Refused(403, f"An admin turned node {node.name!r} away: {node.rejected}", code="node_rejected")
        if not node.approved:
            return JSONResponse({"state": "pending"}, status_code=202)
        try:
            found = await self._credential(node.id)
        except Exception:  # whatever the log's client says, the node polls again
            raise away() from None
        if found is None:
            return JSONResponse({"state": "pending"}, status_code=202)
        return Response(found, media_type="application/json", headers={"cache-control": "no-store"})

    def _failed(self, request: Request) -> None:
        """Count a failure. Who fails too often hears 429 instead; a good token or signature is never held up."""
        caller, now = _caller(request), time.monotonic()
        wait = self._failures.wait(caller, now)
        if wait:
            raise _too_often(wait)
        self._failures.spend(caller, now)


def _caller(request: Request) -> str:
    client: Any = request.client
    return client.host if client else "local"


def _too_often(wait: float) -> Refused:
    seconds = max(1, round(wait + 0.5))
    return Refused(
        429, f"Too many tries; try again in {seconds} s.", code="too_often", headers={"retry-after": str(seconds)}
    )


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(400, "`signature` is not base64.", param="signature") from None
