"""Requests for change: appended once under an id that an idempotency key makes the same."""

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from weft_contracts.catalogue import owner_of
from weft_contracts.codec import CommitTooLarge
from weft_contracts.commit import MAX_COMMIT_BYTES, Cause, Commit, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.request import ChangeRequest, Fulfilled
from weft_contracts.ids import CorrelationId, RequestId, request_id
from weft_contracts.subjects import Aggregate, request
from weft_eventlog import Conflict, EventLog, LogUnavailable, new_event_id
from weft_eventlog.errors import LogFull

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_view import RequestView, evolve_request
from weft_gateway.outbound.log_space import LogSpace

APPEND_S = 5.0
Folded = Callable[[int, float], Awaitable[None]]


def id_for(actor: str, route: str, key: str | None) -> RequestId:
    """The same for the same actor, route and key; without a key a new one each time."""
    if key is None:
        return request_id(secrets.token_bytes(16))
    return request_id(json.dumps([actor, route, key]).encode())


@dataclass(frozen=True, slots=True)
class OwnChange:
    """A change of an aggregate that gateways own: it stands in one batch with its request and the outcome."""

    aggregate: Aggregate
    fact: Fact | None
    """None: it is so already."""
    sequence: int
    """The last of the aggregate that it was decided on; 0: there must be none."""
    result: dict[str, str]


class Changes:
    """Appends to the log on behalf of callers."""

    def __init__(
        self, log: EventLog, connected: Callable[[], bool], log_space: LogSpace, folded: Folded | None = None
    ) -> None:
        """`folded`: returns once a position of the log is folded here, or raises TimeoutError."""
        self._log = log
        self._folded = folded
        self._connected = connected
        self.log_space = log_space

    async def ask(
        self,
        id: RequestId,
        fact: ChangeRequest,
        correlation_id: str,
        drawn: frozenset[str] = frozenset(),
        *,
        actor: str,
        own: OwnChange | None = None,
    ) -> RequestView | None:
        """Append a request; the view of the one that stands there already if its key was used before.

        `own`: where gateways own the request: what is asked for is done with it. Every other request waits for the
        service that owns it.
        Raises Refused: 409 where what it would change moved meanwhile, 413 for what no commit can hold, 422 for a key
        that was used for something else, 503 while the log is away.
        """
        if (owner_of(fact) == "gateway") != (own is not None):
            raise ValueError(f"{fact.type} is answered by {owner_of(fact)}")
        if not self._connected():
            raise away()
        aggregate, cause = request(id), Cause(CorrelationId(correlation_id))
        facts = (fact,) if own is None else (fact, Fulfilled(result=own.result))
        commits = [Commit(aggregate, facts, Guard(aggregate, 0), cause, new_event_id())]
        if own is not None and own.fact is not None:
            follows = Cause(cause.correlation_id, commits[0].event_id)
            commits.append(Commit(own.aggregate, (own.fact,), Guard(own.aggregate, own.sequence), follows))
        try:
            sequences = await self._log.acting_as(actor).append(*commits, timeout=APPEND_S)
            if own is not None and self._folded is not None:
                # The change stands behind its request's outcome, and who has the answer may count on it at once.
                with suppress(TimeoutError):
                    await self._folded(sequences[-1], APPEND_S)
            return None
        except Conflict:
            found = same_request(await self.look_up(id), fact, drawn)
            if found is None and own is not None:
                raise Refused(409, f"{own.aggregate} was changed at the same time; try again.", code="moved") from None
            return found
        except CommitTooLarge:
            what = f"The request takes more than the {MAX_COMMIT_BYTES} bytes that one event of the log may have"
            raise Refused(413, f"{what}; nothing was changed: make it smaller.", code="body_too_large") from None
        except LogFull as error:
            self.log_space.refused(f"{error}; nothing can change until its server has room again, what runs is served")
            raise Refused(503, f"{self.log_space.problem() or error}.", code="log_full") from None
        except LogUnavailable:
            if (full := self.log_space.disk_full()) is not None:  # a server that fails at a write answers nothing
                why = f"{full}. Whether the change was taken shows at /api/requests/{id}."
                raise Refused(503, why, code="log_full", extra={"request": id}) from None
            raise Refused(
                503,
                f"The event log did not answer; whether the change was taken shows at /api/requests/{id}.",
                code="log_away",
                headers={"retry-after": "2"},
                extra={"request": id},
            ) from None

    async def look_up(self, id: RequestId) -> RequestView | None:
        """A request as the log holds it. Raises Refused, 503, while the log is away."""
        if not self._connected():
            raise away()
        view: RequestView | None = None
        try:
            async for recorded in self._log.read(request(id).filter):
                view = evolve_request(view, recorded)
        except LogUnavailable:
            raise away() from None
        return view


def same_request(view: RequestView | None, fact: Fact, drawn: frozenset[str] = frozenset()) -> RequestView | None:
    """The earlier request of the same key. Raises Refused, 422, if it asked for something else.

    The fields that are `drawn` are new at each try and don't count.
    """
    if view is not None and _digest(view.asked, drawn) != _digest(fact, drawn):
        raise Refused(
            422,
            f"This Idempotency-Key was used for another request ({view.id}); take a new key.",
            param="idempotency-key",
            code="key_reused",
        )
    return view


def away() -> Refused:
    """The log can't be reached: nothing can change now."""
    return Refused(
        503, "The event log can't be reached; try again soon.", code="log_away", headers={"retry-after": "2"}
    )


def _digest(fact: Fact, without: frozenset[str]) -> str:
    return hashlib.sha256(fact.model_dump_json(exclude=set(without)).encode()).hexdigest()
