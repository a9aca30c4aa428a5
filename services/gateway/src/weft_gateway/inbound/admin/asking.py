"""From an admin's POST to its outcome: append the request, wait for who owns it to answer."""

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.request import Fulfilled, Rejected

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_view import RequestView
from weft_gateway.inbound.http.gatekeeper import caller_of
from weft_gateway.outbound.changes import Changes, Own, id_for, same_request
from weft_gateway.projections.requests import Requests

_MAX_KEY = 255


class Asking:
    """Shared by the routes that change something."""

    def __init__(self, changes: Changes, requests: Requests, wait: float) -> None:
        self._changes = changes
        self._requests = requests
        self._wait = wait

    async def ask(
        self,
        request: Request,
        fact: Fact,
        drawn: frozenset[str] = frozenset(),
        *,
        key: str | None = None,
        actor: str | None = None,
        own: Own | None = None,
    ) -> RequestView:
        """The fulfilled request. Raises Refused for a rejected one, and 504 for one without an outcome in time.

        `drawn`: fields that are new at each try, by which two requests of one key are not told apart.
        `key`: what makes two requests the same one; None: the header says. `actor`: who asks,
        where it is not the caller. `own`: see `Changes.ask`.
        """
        actor = actor or caller_of(request).actor
        key = key if key is not None else request.headers.get("idempotency-key")
        if key is not None and not 1 <= len(key) <= _MAX_KEY:
            raise Refused(400, f"Idempotency-Key must have 1 to {_MAX_KEY} characters.", param="idempotency-key")
        route = f"{request.method} {request.scope['route'].path}"
        id = id_for(actor, route, key)
        view = same_request(self._requests.get(id), fact, drawn) if key is not None else None
        if view is None:
            view = await self._changes.ask(id, fact, request.state.correlation_id, drawn, actor=actor, own=own)
        if view is None or view.outcome is None:
            try:
                view = await self._requests.outcome(id, self._wait)
            except TimeoutError:
                raise Refused(
                    504,
                    f"No service answered within {self._wait:g} s; the outcome will be at /api/requests/{id}.",
                    code="no_outcome_yet",
                    headers={"location": f"/api/requests/{id}", "retry-after": "2"},
                    extra={"request": id},
                ) from None
        if isinstance(view.outcome, Rejected):
            raise Refused(view.outcome.status, view.outcome.reason, code="rejected", extra={"request": view.id})
        return view


def done(view: RequestView, status: int = 200, **headers: str) -> JSONResponse:
    """What arose, and the request's id."""
    result: dict[str, Any] = {"request": view.id}
    if isinstance(view.outcome, Fulfilled):
        result |= view.outcome.result
    return JSONResponse(result, status_code=status, headers=headers)
