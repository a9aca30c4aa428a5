"""`/api/node/register` and `/api/node/credential`: how a machine joins. Each checks a token or a signature."""

import time
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Header, Request
from fastapi.responses import Response
from weft_api import NodeChanged, NodeCredential, NodeWaits
from weft_contracts import certificates
from weft_contracts.facts.request import JoinRequested
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId, node_id_of

from weft_gateway.domain.access import REGISTER
from weft_gateway.domain.node_bodies import KINDS, RegisterBody, SignedBody
from weft_gateway.domain.rate_limiter import too_often
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.token_buckets import TokenBuckets
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS, node_route_document
from weft_gateway.inbound.nodes.registration_quota import RegistrationQuota
from weft_gateway.inbound.nodes.signatures import (
    NONCE,
    SIGNATURE,
    SIGNED,
    check_newer,
    check_registration,
    signing_node,
)
from weft_gateway.inbound.nodes.untrusted_body import count_failure, read_body
from weft_gateway.outbound.changes import away
from weft_gateway.projections.directory import Directory
from weft_gateway.projections.registration_tokens import Tokens

Credential = Callable[[NodeId], Awaitable[bytes | None]]
"""A node's credential as the registry laid it out; None while there is none. Any error: the log is away."""

_REGISTER = msgspec.json.Decoder(RegisterBody)
_SIGNED = msgspec.json.Decoder(SignedBody)


class Joining:
    """The two routes of a machine that is not in the mesh yet."""

    def __init__(
        self,
        directory: Directory,
        tokens: Tokens,
        asking: Asking,
        credential: Credential,
        quota: RegistrationQuota,
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
        self._quota = quota
        self._joins = TokenBuckets(size=6, every=10.0)
        self.router = APIRouter(tags=["joining"], responses=PROBLEMS)
        body, signed = node_route_document(RegisterBody), node_route_document(SignedBody)
        answering(self.router)(REGISTER, self.register, "POST", status_code=202, openapi_extra=body)
        self.router.add_api_route(
            "/api/node/credential",
            self.credential,
            methods=["POST"],
            response_model=NodeCredential,
            responses={202: {"model": NodeWaits, "description": "There is none yet"}},
            openapi_extra=signed,
        )

    async def register(
        self,
        request: Request,
        nonce: Annotated[str, Header(alias=NONCE, description="Seconds since the epoch")] = "",
        signature: Annotated[str, Header(alias=SIGNATURE, description=SIGNED)] = "",
    ) -> Answer[NodeChanged]:
        """Ask to join, with a token, signed. Answers 202 and the node's id; its credential is polled for."""
        from weft_identity import nkey

        body = await read_body(request, _REGISTER)
        kind = KINDS.get(body.kind)
        if kind is None:
            raise Refused(400, "`kind` does not fit: it must be 'worker' or 'agent'.", param="kind")
        try:
            token = self._tokens.check(body.token.partition(".")[0], body.public_key, self._now())
            nkey.expect_role(body.public_key, nkey.Role.USER)
            signed_at = check_registration(nonce, signature, body.public_key, await request.body(), self._now())
        except nkey.BadKey as error:
            raise Refused(400, f"`public_key` is not a user key: {error}.", param="public_key") from None
        except Refused:
            count_failure(request)
            raise
        node = self._directory.fleet.nodes.get(node_id_of(body.public_key))
        check_newer(signed_at, node.signed_at if node is not None else 0.0)
        key = self._certificate_key(body)
        wait = self._joins.wait(body.public_key, time.monotonic())
        if wait:
            raise too_often(wait)
        self._joins.spend(body.public_key, time.monotonic())
        fact = JoinRequested(
            token=token,
            name=body.name,
            public_key=body.public_key,
            addresses=Addresses(host=body.addresses.host, http_port=body.addresses.http_port),
            labels=body.labels,
            caps=body.caps.caps(),
            node_kind=kind,
            certificate_key=key,
            signed_at=signed_at,
        )
        with self._quota.entered(token, body.public_key, self._tokens.views[token], self._now()):
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

    async def credential(self, request: Request) -> Response:
        """A node's poll: 200 with its credential, 202 until it is approved and the registry laid one out, 423
        while it is cut off."""
        body = await read_body(request, _SIGNED)
        node = signing_node(self._directory, body, "credential", lambda: count_failure(request), self._now())
        if not node.approved:
            return _waits()
        if node.cut_off is not None:
            what = f"Node {node.name!r} is cut off: {node.cut_off}. An admin brings it back: weft nodes resume."
            raise Refused(423, what, code="node_cut_off")
        try:
            found = await self._credential(node.id)
        except Exception:  # whatever the log's client says, the node polls again
            raise away() from None
        if found is None:
            return _waits()
        return Response(found, media_type="application/json", headers={"cache-control": "no-store"})


def _waits() -> Answer[NodeWaits]:
    return Answer({"state": "pending"}, 202)
