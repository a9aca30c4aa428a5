"""`/api/keys`: what people and their programs show to be let in. Gateways own keys: they answer by themselves."""

import secrets
import time
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request
from weft_api import KeyChanged, KeyMade, KeyPage, NameErased
from weft_contracts.api_key import ENTROPY_BYTES, hash_of, key_id, prefix_of, secret_of
from weft_contracts.facts.key import Created, Revoked
from weft_contracts.facts.request import KeyRequested, KeyRevocationRequested
from weft_contracts.ids import KeyId
from weft_contracts.subjects import api_key

from weft_gateway.domain.keys import KeyView, key_shape
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, arisen, done
from weft_gateway.inbound.admin.bodies import KeyBody
from weft_gateway.inbound.admin.listing import Cursor, Limit, Word
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.auth_middleware import caller_of
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.outbound.changes import OwnChange
from weft_gateway.outbound.key_names import KeyNames
from weft_gateway.projections.keys import Keys

_DRAWN = frozenset({"key", "hash", "prefix"})
"""New at each try: by these two requests of one Idempotency-Key are not told apart."""

_UNCERTAIN = frozenset({"log_away", "no_outcome_yet"})
"""Refusals behind which the key may have been made all the same."""


class APIKeys:
    """Making, listing and revoking keys. The list is from memory: keys are few."""

    def __init__(self, keys: Keys, asking: Asking, names: KeyNames) -> None:
        self._keys = keys
        self._asking = asking
        self._names = names
        self.router = APIRouter(tags=["keys"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/keys", self.list, "GET")
        add("/api/keys", self.create, "POST", status_code=201)
        add("/api/keys/{id}", self.revoke, "DELETE")
        add("/api/keys/{id}/name", self.forget, "DELETE")

    async def list(self, after: Cursor = None, limit: Limit = 100, state: Word = None) -> Answer[KeyPage]:
        """A page of keys, by id, without their secrets; `state` is live, expired or revoked."""
        now = time.time()
        views = [view for id, view in sorted(self._keys.views.items()) if after is None or id > after]
        fitting = [view for view in views if state in (None, view.state(now))]
        names = await self._names.known([view.id for view in fitting[:limit]])
        items = [key_shape(view, names.get(view.id), now) for view in fitting[:limit]]
        return Answer({"items": items, "next": items[-1]["id"] if len(fitting) > limit else None})

    async def create(self, request: Request, body: KeyBody) -> Answer[KeyMade]:
        """Make a key. Its secret is in this answer and nowhere else."""
        if body.models is not None and ("admin" in body.scopes or "inference" not in body.scopes):
            what = "`models` bind a key for inference; leave them out, or ask for the scope inference without admin."
            raise Refused(400, what, param="models")
        secret = secret_of(secrets.token_bytes(ENTROPY_BYTES))
        hash, now = hash_of(secret), time.time()
        id = key_id(hash)
        shared: dict[str, Any] = {
            "hash": hash,
            "prefix": prefix_of(secret),
            "scopes": tuple(dict.fromkeys(body.scopes)),
            "models": None if body.models is None else tuple(dict.fromkeys(body.models)),
        }
        fact = KeyRequested(key=id, lasts_s=body.expires_in_s, **shared)
        expires_at = None if body.expires_in_s is None else now + body.expires_in_s
        own = OwnChange(api_key(id), Created(expires_at=expires_at, **shared), 0, {"key": id})
        if body.name:
            await self._names.put(id, body.name)  # before the key: one that is made bears its name
        try:
            view = await self._asking.ask(request, fact, drawn=_DRAWN, own=own)
        except Refused as refused:
            if body.name and refused.code not in _UNCERTAIN:
                await self._forgotten(id)
            raise
        made = KeyId(arisen(view)["key"])
        if made != id:
            await self._forgotten(id)
            await self._check_name(made, body.name)
        answer: KeyMade = {"request": view.id, "key": made, "secret": secret if made == id else None}
        known = self._keys.views.get(made)
        if known is None and made == id:  # not folded yet
            by = caller_of(request).actor
            known = KeyView(id=id, expires_at=expires_at, created_at=now, created_by=by, sequence=0, **shared)
        if known is not None:
            answer = {**answer, **key_shape(known, body.name or None, now)}
        return Answer(answer, 201, cache_control="no-store")

    async def revoke(self, request: Request, id: str) -> Answer[KeyChanged]:
        """Let nothing new begin with a key, by its id, its prefix, or its name where one live key bears it."""
        view = await self._named(id)
        fact = KeyRevocationRequested(key=view.id)
        revoked = Revoked() if view.revoked_at is None else None
        own = OwnChange(api_key(view.id), revoked, view.sequence, {"key": view.id})
        return done(await self._asking.ask(request, fact, own=own))

    async def forget(self, id: str) -> Answer[NameErased]:
        """Erase the name of a key; the key stays as it is."""
        view = await self._named(id)
        await self._names.erase(view.id)
        return Answer({"key": view.id})

    async def _named(self, ref: str) -> KeyView:
        views = self._keys.views
        if KeyId(ref) in views:
            return views[KeyId(ref)]
        now = time.time()
        live = [view for view in views.values() if view.state(now) == "live"]
        found = [view for view in live if view.prefix == ref]
        if not found:
            names = await self._names.of([view.id for view in live])
            found = [view for view in live if names.get(view.id) == ref]
        if len(found) > 1:
            what = f"{len(found)} live keys bear the name {ref[:63]!r}: name one by its id."
            raise Refused(409, what, code="ambiguous")
        if not found:
            raise Refused(404, f"A live key {ref[:64]!r} does not exist; see /api/keys.", code="key_not_found")
        return found[0]

    async def _check_name(self, made: KeyId, name: str) -> None:
        """The log can't tell that a used Idempotency-Key comes with another name. Raises Refused, 422."""
        kept = (await self._names.of([made])).get(made, "")
        if kept != name:
            what = "This Idempotency-Key was used for a key of another name; take a new key."
            raise Refused(422, what, param="idempotency-key", code="key_reused")

    async def _forgotten(self, id: KeyId) -> None:
        """No key came of it: its name goes. One that can't be erased now names nobody."""
        with suppress(Refused):
            await self._names.erase(id)
