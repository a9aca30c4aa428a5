"""`/api/secrets`: values that specs name and nobody reads: set, listed by name, removed."""

from typing import Annotated, Protocol

from fastapi import APIRouter, Path, Request
from weft_api import NamedSecret, NamedSecretChanged, NamedSecretPage, NamedSecretSet
from weft_contracts.facts.request import SecretRemovalRequested, SecretRequested
from weft_contracts.secrets import MOST_BYTES, SECRET_NAME
from weft_fleet import Fleet
from weft_fleet.secrets_named import models_naming

from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import SecretBody
from weft_gateway.inbound.admin.listing import Cursor, Limit
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory

Name = Annotated[str, Path(pattern=f"^{SECRET_NAME}$", description="What the secret is called; case counts")]
_DRAWN = frozenset({"sealed"})
"""New at each try: two requests of one Idempotency-Key are not told apart by their values."""


class Sealing(Protocol):
    """Where sealed values go."""

    async def put(self, name: str, value: bytes) -> str:
        """Seal a value and lay it out; under which id it lies. Raises Refused."""
        ...


class NamedSecrets:
    """Setting, listing and removing. The list is from memory: secrets are few."""

    def __init__(self, directory: Directory, asking: Asking, values: Sealing) -> None:
        self._directory = directory
        self._asking = asking
        self._values = values
        self.router = APIRouter(tags=["secrets"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/secrets", self.list, "GET")
        add("/api/secrets/{name}", self.set, "PUT")
        add("/api/secrets/{name}", self.remove, "DELETE")

    async def list(self, after: Cursor = None, limit: Limit = 100) -> Answer[NamedSecretPage]:
        """A page of secrets, by name, and which models name each. Their values can't be had."""
        fleet = self._directory.fleet
        names = [name for name in sorted(fleet.secrets) if after is None or name > after]
        items = [_shown(fleet, name) for name in names[:limit]]
        return Answer({"items": items, "next": items[-1]["name"] if len(names) > limit else None})

    async def set(self, request: Request, name: Name, body: SecretBody) -> Answer[NamedSecretSet]:
        """Give a secret a value, or another one: what runs and names it hears of it within a minute, as it runs.

        The value is sealed before anything is written; the log has its name alone.
        """
        try:
            value = body.value.get_secret_value().encode()
        except UnicodeEncodeError:  # half a character; its error would show the value
            raise Refused(400, "`value` does not fit: it is no text.", param="value") from None
        if len(value) > MOST_BYTES:
            raise Refused(400, f"`value` does not fit: it may have {MOST_BYTES} bytes.", param="value")
        sealed = await self._values.put(name, value)
        del value
        return done(await self._asking.ask(request, SecretRequested(name=name, sealed=sealed), _DRAWN))

    async def remove(self, request: Request, name: Name) -> Answer[NamedSecretChanged]:
        """Forget a secret; 409 while a live revision of a model names it."""
        if name not in self._directory.fleet.secrets:
            raise Refused(404, f"Secret {name!r} does not exist.", code="secret_not_found")
        return done(await self._asking.ask(request, SecretRemovalRequested(name=name)))


def _shown(fleet: Fleet, name: str) -> NamedSecret:
    view = fleet.secrets[name]
    return {"name": name, "version": view.version, "set_at": view.set_at, "models": models_naming(fleet, name)}
