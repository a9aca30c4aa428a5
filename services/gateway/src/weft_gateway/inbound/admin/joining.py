"""`/api/node/register` and `/api/node/credential`: how a machine joins. They check for themselves who asks."""

import time
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, Response
from weft_contracts import certificates
from weft_contracts.facts.request import JoinRequested
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId

from weft_gateway.domain.buckets import Buckets
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import RegisterBody, SignedBody
from weft_gateway.inbound.admin.documented import PROBLEMS
from weft_gateway.inbound.admin.failures import Failures, too_often
from weft_gateway.inbound.admin.signed import signing_node
from weft_gateway.inbound.admin.signed_registration import NONCE, SIGNATURE, SIGNED, check_signed
from weft_gateway.outbound.changes import away
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.tokens import Tokens

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
        failures: Failures,
        *,
        certified: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`certified`: the mesh speaks TLS, and a node without a certificate would be of no use."""
        self._certified = certified
        self._directory = directory
        self._tokens = tokens
        self._asking = asking
        self._credential = credential
        self._now = now
        self._failures = failures
        self._joins = Buckets(size=6, every=10.0)
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        self.router.add_api_route("/api/node/register", self.register, methods=["POST"], status_code=202)
        self.router.add_api_route("/api/node/credential", self.credential, methods=["POST"])

    async def register(
        self,
        request: Request,
        body: RegisterBody,
        nonce: Annotated[str, Header(alias=NONCE, description="Seconds since the epoch")] = "",
        signature: Annotated[str, Header(alias=SIGNATURE, description=SIGNED)] = "",
    ) -> JSONResponse:
        """Ask to join, with a token, signed. Answers 202 and the node's id; its credential is polled for."""
        from weft_servers import nkey

        try:
            token = self._tokens.check(body.token.partition(".")[0], self._now())
            nkey.expect_role(body.public_key, nkey.Role.USER)
            check_signed(nonce, signature, body.public_key, await request.body(), self._now())
        except nkey.BadKey as error:
            raise Refused(400, f"`public_key` is not a user key: {error}.", param="public_key") from None
        except Refused:
            self._failures.count(request)
            raise
        key = self._certificate_key(body)
        wait = self._joins.wait(body.public_key, time.monotonic())
        if wait:
            raise too_often(wait)
        self._joins.spend(body.public_key, time.monotonic())
        fact = JoinRequested(
            token=token,
            name=body.name,
            public_key=body.public_key,
            addresses=Addresses.model_validate(body.addresses.model_dump()),
            labels=body.labels,
            caps=body.caps.caps(),
            node_kind=body.kind,
            certificate_key=key,
        )
        return done(await self._asking.ask(request, fact, actor=token), 202)

    def _certificate_key(self, body: RegisterBody) -> str:
        """For which key the machine asks certificates; empty for none. Raises Refused."""
        if not body.certificate_key:
            if self._certified:
                what = "This mesh speaks TLS, and the machine asks for no certificate: join by the whole token."
                raise Refused(400, what, param="certificate_key")
            return ""
        try:
            certificates.check_key(body.certificate_key)
        except ValueError as error:
            raise Refused(400, f"`certificate_key` does not fit: {error}.", param="certificate_key") from None
        return body.certificate_key

    async def credential(self, request: Request, body: SignedBody) -> Response:
        """A node's poll: 200 with its credential, 202 until it is approved and the registry laid one out."""
        node = signing_node(self._directory, body, "credential", lambda: self._failures.count(request), self._now())
        if not node.approved:
            return JSONResponse({"state": "pending"}, status_code=202)
        try:
            found = await self._credential(node.id)
        except Exception:  # whatever the log's client says, the node polls again
            raise away() from None
        if found is None:
            return JSONResponse({"state": "pending"}, status_code=202)
        return Response(found, media_type="application/json", headers={"cache-control": "no-store"})
