"""From an admin's POST to its outcome: append the request, wait for who owns it to answer."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from weft_contracts.facts.request import ChangeRequest, Fulfilled, Rejected
from weft_contracts.formats import unwritable

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_view import RequestView
from weft_gateway.inbound.http.answer import Answer
from weft_gateway.inbound.http.auth_middleware import caller_of
from weft_gateway.outbound.changes import Changes, OwnChange, id_for, same_request
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
        fact: ChangeRequest,
        drawn: frozenset[str] = frozenset(),
        *,
        key: str | None = None,
        actor: str | None = None,
        own: OwnChange | None = None,
        at_least: float = 0.0,
    ) -> RequestView:
        """The fulfilled request. Raises Refused for a rejected one, and 504 for one without an outcome in time.

        `drawn`: fields that are new at each try, by which two requests of one key are not told apart.
        `key`: what makes two requests the same one; None: the header says. `actor`: who asks,
        where it is not the caller. `own`: see `Changes.ask`.
        `at_least`: seconds that the outcome is waited for, even where the settings say fewer.
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
            wait = max(self._wait, at_least)
            try:
                view = await self._requests.outcome(id, wait)
            except TimeoutError:
                full = self._changes.log_space.problem()
                because = f" ({full})" if full is not None else ""
                raise Refused(
                    504,
                    f"No service answered within {wait:g} s{because}; the outcome will be at /api/requests/{id}.",
                    code="no_outcome_yet",
                    headers={"location": f"/api/requests/{id}", "retry-after": "2"},
                    extra={"request": id},
                ) from None
        if isinstance(view.outcome, Rejected):
            raise Refused(view.outcome.status, view.outcome.reason, code="rejected", extra={"request": view.id})
        return view


def done(view: RequestView, status: int = 200, **more: object) -> Answer[Any]:
    """What arose, as the outcome in the log names it, the request's id, and `more`."""
    return Answer({"request": view.id, **arisen(view), **more}, status)


def check_format(fact: ChangeRequest, raised: Mapping[str, int]) -> None:
    """Raises Refused, 409, for a request in a version that not all of the mesh reads."""
    if (why := unwritable(fact, raised)) is not None:
        raise Refused(409, f"{why[0].upper()}{why[1:]}.", code="not_upgraded")


def arisen(view: RequestView) -> Mapping[str, str]:
    """What a fulfilled request names; nothing of another."""
    return view.outcome.result if isinstance(view.outcome, Fulfilled) else {}
