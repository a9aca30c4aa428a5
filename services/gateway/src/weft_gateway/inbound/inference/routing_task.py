"""The slow path of routing one request: wait for a replica that loads, for a free one, for a session."""

import asyncio
import random
from typing import Generic, Protocol, TypeVar

from weft_dataplane.client_errors import SessionBusy, SessionError
from weft_dataplane.session_client import SessionClient
from weft_fleet import ModelView

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint_state import EndpointState, restricted_to
from weft_gateway.domain.routing.filters import Filter, has_room, not_among, reachable, same_digest
from weft_gateway.domain.routing.routing_options import REPLICA, check_replica
from weft_gateway.domain.routing.selection import Selection, select
from weft_gateway.inbound.inference.alias_routing import AliasRouting, AliasWay, Why
from weft_gateway.inbound.inference.faults import is_retiring
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.inference.queue import BusyQueue, LoadingLine, QueueFull
from weft_gateway.outbound.connection_pool import ConnectionPool
from weft_gateway.projections.directory import Directory

_BUSY_PAUSE = (0.1, 0.4)
_RETRY = {"retry-after": "5"}
_IN_VAIN = {"x-should-retry": "false"}
"""OpenAI's clients ask again after a 5xx, unless this says that it is no use."""
_LOOK = 1.0
"""Seconds after which a waiting request looks again even if nothing seems to have changed."""


class RoutedRequest(Protocol):
    """A request that needs an endpoint: an InFlightChoice or an InFlightUnary."""

    done: bool
    correlation_id: str
    ids: list[int]
    digest: str
    tried: set[str]
    tries: int
    last_error: str
    way: AliasWay | None
    """Through the alias that it named; None: it named a model."""

    @property
    def only(self) -> str | None:
        """The replica that was chosen; None: any."""
        ...

    @property
    def busy_since(self) -> float:
        """When it first had to wait for busy replicas; 0: never."""
        ...

    @busy_since.setter
    def busy_since(self, since: float) -> None: ...

    def refuse(self, refused: Refused) -> None: ...


RequestT = TypeVar("RequestT", bound=RoutedRequest)
RequestIn = TypeVar("RequestIn", bound=RoutedRequest, contravariant=True)


class RoutingContext(Protocol[RequestIn]):
    """What a routing task needs of its dispatcher."""

    directory: Directory
    pool: ConnectionPool
    queue: BusyQueue
    loading: LoadingLine
    limits: Limits
    aliases: AliasRouting

    def now(self) -> float: ...
    def submit(self, request: RequestIn, state: EndpointState, session: SessionClient) -> None: ...
    def wake(self, request: RequestIn, model: ModelView) -> None:
        """Let there be a first replica of a model that sleeps."""
        ...

    def go_to(self, request: RequestIn, model: ModelView) -> None:
        """It is another model's from here on, of the same alias."""
        ...


class RoutingTask(Generic[RequestT]):
    """Ends by a submit or a refusal, within the limits' waits."""

    def __init__(
        self, dispatcher: RoutingContext[RequestT], request: RequestT, model: ModelView, *, busy: bool = False
    ) -> None:
        """`busy`: a replica took the request and then said that it has no room for it."""
        self._dispatcher = dispatcher
        self._request = request
        self._model = model
        now = dispatcher.now()
        wait = dispatcher.limits.resume_wait if request.ids else dispatcher.limits.loading_wait
        self._loading_until = now + wait
        self._queued = False
        self._said_busy = busy

    @property
    def model(self) -> ModelView:
        """Whose replicas it looks for; another one's than at first where the request named an alias."""
        return self._model

    async def run(self) -> None:
        submitted = False
        try:
            while not submitted and not self._request.done:
                try:
                    submitted = await self._step()
                except Refused as refused:
                    if self._move("refused"):
                        continue
                    self._request.last_error = refused.sentence  # for the log: of several 529, which it was
                    self._request.refuse(refused)
        finally:
            if not submitted:
                self._dispatcher.queue.wake(self._model.id)  # the room that it may have been called for is another's

    async def _step(self) -> bool:
        """Look once, and where that is in vain wait for a reason to look again. Whether it was submitted."""
        if self._said_busy:
            await self._try_later()
        selection = self._select()
        if selection.chosen is not None:
            return await self._submit(selection.chosen)
        if self._request.only is not None:
            raise self._replica_refusal(self._request.only, selection)
        if self._move("waits"):
            return False
        if self._all_busy():
            await self._wait_for_room()
        else:
            await self._wait_for_ready(selection)
        return False

    def _move(self, why: Why) -> bool:
        """Go on with another model of the request's alias, where one may do better."""
        other = self._dispatcher.aliases.next(self._request.way, self._model.id, why)
        if other is not None:
            self._go_to(other)
        return other is not None

    def _go_to(self, model: ModelView) -> None:
        self._dispatcher.queue.wake(self._model.id)  # the room that it may have been called for is another's
        self._model, self._queued = model, False
        self._dispatcher.go_to(self._request, model)

    def _select(self) -> Selection:
        states, filters = self._states_and_filters()
        return select(states, [*filters, has_room])

    def _all_busy(self) -> bool:
        """Whether some replica would do if it had room."""
        states, filters = self._states_and_filters()
        return select(states, filters).chosen is not None

    def _states_and_filters(self) -> tuple[list[EndpointState], list[Filter]]:
        request, states = self._request, self._states()
        filters: list[Filter] = [reachable]
        if request.ids:
            filters.append(same_digest(request.digest))
        # A replica that failed this request is tried again only where there is no other.
        if any(state.endpoint.replica not in request.tried and state.ejected is None for state in states):
            filters.append(not_among(request.tried))
        return states, filters

    def _states(self) -> list[EndpointState]:
        return restricted_to(self._dispatcher.pool.endpoint_states(self._model.id), self._request.only)

    def _replica_refusal(self, only: str, selection: Selection) -> Refused:
        """Why the chosen replica does not take it now: who chose one is not kept waiting, here or for another."""
        check_replica(self._dispatcher.directory.fleet, self._model, only)
        if self._all_busy():
            return self._busy(f"the chosen one, {only}, {selection.refusals.get(only, 'has no room')}")
        why = selection.refusals.get(only, self._request.last_error or "it is away")
        return Refused(503, f"Replica {only} can't be reached: {why}.", param=REPLICA, code="replica_unreachable")

    async def _submit(self, state: EndpointState) -> bool:
        request, dispatcher = self._request, self._dispatcher
        try:
            session = dispatcher.pool.session(state) or await dispatcher.pool.open(state)
            if request.done:
                return True
            if has_room(state) is not None:
                return False  # it filled up while the session opened
            dispatcher.submit(request, state, session)
        except SessionBusy as error:
            request.last_error = str(error)
            request.tries += 1
            request.tried.add(state.endpoint.replica)
            self._said_busy = True
            return False
        except SessionError as error:
            request.tried.add(state.endpoint.replica)
            request.last_error = str(error)
            if is_retiring(error):
                return False  # it is ejected now: that is no failure, and another takes its place
            request.tries += 1
            if request.tries >= dispatcher.limits.tries:
                raise Refused(
                    503,
                    f"No replica of model {self._model.name!r} could be reached: {error}.",
                    code="replica_unreachable",
                    headers={"retry-after": "2"},
                ) from None
            return False
        return True

    async def _try_later(self) -> None:
        """Unless another replica is left to try, give the engine's own queue a moment."""
        self._said_busy = False
        self._request.tries -= 1  # a full queue is no failure
        if self._request.only is not None:
            raise self._busy(f"the chosen one, {self._request.only}, has no room")
        states = self._states()
        if any(state.ejected is None and state.endpoint.replica not in self._request.tried for state in states):
            return
        if self._move("no room"):
            return
        if self._busy_left() <= 0:
            raise self._busy(f"no engine took it within {self._dispatcher.limits.busy_wait:g} s")
        self._request.tried.clear()
        await asyncio.sleep(random.uniform(*_BUSY_PAUSE))

    def _busy_left(self) -> float:
        """Seconds that this request may still wait for busy replicas; they count from the first wait."""
        now = self._dispatcher.now()
        since = self._request.busy_since or now
        self._request.busy_since = since
        return since + self._dispatcher.limits.busy_wait - now

    async def _wait_for_room(self) -> None:
        dispatcher, model = self._dispatcher, self._model
        left = self._busy_left()
        try:
            if left <= 0:
                raise TimeoutError
            beside = dispatcher.aliases.beside(self._request.way, model.id)
            called = await dispatcher.queue.turn(model.id, left, again=self._queued, beside=beside)
            self._queued = True
            if called != model.id and (other := dispatcher.aliases.model(called)) is not None:
                self._go_to(other)
        except QueueFull:
            raise self._busy(f"{dispatcher.limits.busy_queue} requests wait for it already") from None
        except TimeoutError:
            if self._busy_left() > 0:
                return  # its own choices are what it waits for
            raise self._busy(f"none became free within {dispatcher.limits.busy_wait:g} s") from None

    def _busy(self, why: str) -> Refused:
        return Refused(
            529,
            f"All replicas of model {self._model.name!r} are busy: {why}.",
            code="all_busy",
            headers={"retry-after": "2"},
        )

    async def _wait_for_ready(self, selection: Selection) -> None:
        directory = self._dispatcher.directory
        model = directory.fleet.models.get(self._model.id)
        if model is None or model.deleted:
            raise Refused(404, f"Model {self._model.name!r} was deleted.", param="model", code="model_not_found")
        unavailability = directory.why_unavailable(model)
        ejected = next(iter(selection.refusals.values()), None)
        left = self._loading_until - self._dispatcher.now()
        if ejected is None and not unavailability.temporary:
            headers = _IN_VAIN if unavailability.permanent else {"retry-after": "10"}
            raise Refused(503, unavailability.sentence, code="not_served", headers=headers)
        what = unavailability.sentence if ejected is None else f"Model {model.name!r} can't be reached: {ejected}."
        if left <= 0:
            raise Refused(503, what, code="not_ready", headers=_RETRY)
        if not self._dispatcher.loading.enter(model.id):
            full = f"{what.rstrip('.')}, and {self._dispatcher.limits.loading_line} requests wait for it already."
            raise Refused(503, full, code="not_ready", headers=_RETRY)
        if unavailability.sleeps:
            self._dispatcher.wake(self._request, model)
        try:
            await directory.changed.wait(timeout=min(left, _LOOK))
        finally:
            self._dispatcher.loading.leave(model.id)
