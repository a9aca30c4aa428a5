"""`/api/tokens`: with a registration token a machine may ask to join."""

import secrets
import time

from fastapi import APIRouter, Request
from weft_api import TokenChanged, TokenMade, TokenPage
from weft_contracts.certificates import pinned_token
from weft_contracts.facts.request import TokenRequested, TokenRevocationRequested
from weft_contracts.ids import TokenId, token_hash, token_id

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.registration_token import token_shape
from weft_gateway.inbound.admin.asking import Asking, arisen, done
from weft_gateway.inbound.admin.bodies import TokenBody
from weft_gateway.inbound.admin.listing import Cursor, Limit, Word
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.registration_tokens import Tokens

_DRAWN = frozenset({"token", "hash"})
"""New at each try: by these two requests of one Idempotency-Key are not told apart."""


class RegistrationTokens:
    """Making, listing and revoking tokens. The list is from memory: tokens are few."""

    def __init__(self, tokens: Tokens, asking: Asking, authority: str | None = None) -> None:
        """`authority`: the digest of the mesh's, which its tokens carry; None: the mesh speaks plainly."""
        self._authority = authority
        self._tokens = tokens
        self._asking = asking
        self.router = APIRouter(tags=["tokens"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/tokens", self.list, "GET")
        add("/api/tokens", self.create, "POST", status_code=201)
        add("/api/tokens/{id}", self.revoke, "DELETE")

    async def list(self, after: Cursor = None, limit: Limit = 100, state: Word = None) -> Answer[TokenPage]:
        """A page of tokens, by id, without their secrets; `state` is live, expired or revoked."""
        now = time.time()
        all_of_them = [token_shape(id, view, now) for id, view in sorted(self._tokens.views.items())]
        fitting = [t for t in all_of_them if (after is None or t["id"] > after) and state in (None, t["state"])]
        items = fitting[:limit]
        return Answer({"items": items, "next": items[-1]["id"] if len(fitting) > limit else None})

    async def create(self, request: Request, body: TokenBody) -> Answer[TokenMade]:
        """Make a token. Its secret is in this answer and nowhere else."""
        secret = secrets.token_urlsafe(32)
        while secret.startswith("-"):  # on a command line it would be taken for an option
            secret = secrets.token_urlsafe(32)
        fact = TokenRequested(
            token=token_id(secret),
            hash=token_hash(secret),
            name=body.name,
            approves=body.auto_approve,
            lasts_s=body.expires_in_s,
            most_waiting=body.most_waiting,
        )
        view = await self._asking.ask(request, fact, drawn=_DRAWN)
        made = TokenId(arisen(view)["token"])
        answer: TokenMade = {
            "request": view.id,
            "token": made,
            "secret": self._told(secret) if made == fact.token else None,
        }
        known = self._tokens.views.get(made)
        if known is not None:
            answer = {**answer, **token_shape(made, known, time.time())}
        return Answer(answer, 201, cache_control="no-store")

    def _told(self, secret: str) -> str:
        return secret if self._authority is None else pinned_token(secret, self._authority)

    async def revoke(self, request: Request, id: str) -> Answer[TokenChanged]:
        """Let nobody join by a token any more, by its id, or its name where one token that isn't revoked bears it."""
        return done(await self._asking.ask(request, TokenRevocationRequested(token=self._id(id))))

    def _id(self, ref: str) -> TokenId:
        if TokenId(ref) in self._tokens.views:
            return TokenId(ref)
        found = [id for id, view in self._tokens.views.items() if view.name == ref and not view.revoked]
        if len(found) > 1:
            raise Refused(409, f"{len(found)} tokens bear the name {ref[:63]!r}: name one by its id.", code="ambiguous")
        if not found:
            raise Refused(404, f"Token {ref[:64]!r} does not exist.", code="token_not_found")
        return found[0]
