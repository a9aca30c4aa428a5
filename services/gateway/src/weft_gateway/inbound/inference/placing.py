"""The slow path of one request: wait for a replica that loads, for a free one, for a session."""

import asyncio
import random
from typing import Generic, Protocol, TypeVar

from weft_dataplane.client_errors import SessionBusy, SessionError
from weft_dataplane.session_client import SessionClient
from weft_placement.fleet import ModelView

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.filters import Filter, has_room, not_among, reachable, same_digest
from weft_gateway.domain.routing.lane import Lane
from weft_gateway.domain.routing.pick import Choice, choose
from weft_gateway.inbound.inference.faults import is_retiring
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.inference.queue import BusyQueue, LoadingLine, QueueFull
from weft_gateway.outbound.sessions import Sessions
from weft_gateway.projections.directory import Directory

_BUSY_PAUSE = (0.1, 0.4)
_RETRY = {"retry-after": "5"}
_LOOK = 1.0
"""Seconds after which a waiting request looks again even if nothing seems to have changed."""


class Seeker(Protocol):
    """A request that needs a replica; see Running."""

    done: bool
    ids: list[int]
    digest: str
    tried: set[str]
    tries: int
    last_error: str

    @property
    def busy_since(self) -> float:
        """When it first had to wait for busy replicas; 0: never."""
        ...

    @busy_since.setter
    def busy_since(self, since: float) -> None: ...

    def refuse(self, refused: Refused) -> None: ...


SeekerT = TypeVar("SeekerT", bound=Seeker)
SeekerIn = TypeVar("SeekerIn", bound=Seeker, contravariant=True)


class Place(Protocol[SeekerIn]):
    """What placing needs of the desk."""

    directory: Directory
    sessions: Sessions
    queue: BusyQueue
    loading: LoadingLine
    limits: Limits

    def now(self) -> float: ...
    def submit(self, running: SeekerIn, lane: Lane, session: SessionClient) -> None: ...


class Placing(Generic[SeekerT]):
    """Ends by a submit or a refusal, within the limits' waits."""

    def __init__(self, desk: Place[SeekerT], running: SeekerT, model: ModelView, *, busy: bool = False) -> None:
        """`busy`: a replica took the request and then said that it has no room for it."""
        self._desk = desk
        self._running = running
        self._model = model
        now = desk.now()
        wait = desk.limits.resume_wait if running.ids else desk.limits.loading_wait
        self._loading_until = now + wait
        self._queued = False
        self._said_busy = busy

    async def run(self) -> None:
        placed = False
        try:
            while not placed and not self._running.done:
                try:
                    placed = await self._step()
                except Refused as refused:
                    self._running.refuse(refused)
        finally:
            if not placed:
                self._desk.queue.wake(self._model.id)  # the room that it may have been called for is another's

    async def _step(self) -> bool:
        """Look once, and where that is in vain wait for a reason to look again. Whether it was submitted."""
        if self._said_busy:
            await self._try_later()
        choice = self._choose()
        if choice.lane is not None:
            return await self._submitted(choice.lane)
        if self._all_busy():
            await self._wait_for_room()
        else:
            await self._wait_for_ready(choice)
        return False

    def _choose(self) -> Choice:
        lanes, filters = self._lanes_and_filters()
        return choose(lanes, [*filters, has_room])

    def _all_busy(self) -> bool:
        """Whether some replica would do if it had room."""
        lanes, filters = self._lanes_and_filters()
        return choose(lanes, filters).lane is not None

    def _lanes_and_filters(self) -> tuple[list[Lane], list[Filter]]:
        running, lanes = self._running, self._desk.sessions.lanes(self._model.id)
        filters: list[Filter] = [reachable]
        if running.ids:
            filters.append(same_digest(running.digest))
        # A replica that failed this request is tried again only where there is no other.
        if any(lane.target.replica not in running.tried and lane.shunned is None for lane in lanes):
            filters.append(not_among(running.tried))
        return lanes, filters

    async def _submitted(self, lane: Lane) -> bool:
        running, desk = self._running, self._desk
        try:
            session = desk.sessions.session(lane) or await desk.sessions.open(lane)
            if running.done:
                return True
            if has_room(lane) is not None:
                return False  # it filled up while the session opened
            desk.submit(running, lane, session)
        except SessionBusy as error:
            running.last_error = str(error)
            running.tries += 1
            running.tried.add(lane.target.replica)
            self._said_busy = True
            return False
        except SessionError as error:
            running.tried.add(lane.target.replica)
            running.last_error = str(error)
            if is_retiring(error):
                return False  # it is shunned now: that is no failure, and another takes its place
            running.tries += 1
            if running.tries >= desk.limits.tries:
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
        self._running.tries -= 1  # a full queue is no failure
        lanes = self._desk.sessions.lanes(self._model.id)
        if any(lane.shunned is None and lane.target.replica not in self._running.tried for lane in lanes):
            return
        if self._busy_left() <= 0:
            raise self._busy(f"none had room within {self._desk.limits.busy_wait:g} s")
        self._running.tried.clear()
        await asyncio.sleep(random.uniform(*_BUSY_PAUSE))

    def _busy_left(self) -> float:
        """Seconds that this request may still wait for busy replicas; they count from the first wait."""
        now = self._desk.now()
        since = self._running.busy_since or now
        self._running.busy_since = since
        return since + self._desk.limits.busy_wait - now

    async def _wait_for_room(self) -> None:
        desk, model = self._desk, self._model
        left = self._busy_left()
        try:
            if left <= 0:
                raise TimeoutError
            await desk.queue.turn(model.id, left, again=self._queued)
            self._queued = True
        except QueueFull:
            raise self._busy(f"{desk.limits.busy_queue} requests wait for it already") from None
        except TimeoutError:
            if self._busy_left() > 0:
                return  # its own choices are what it waits for
            raise self._busy(f"none became free within {desk.limits.busy_wait:g} s") from None

    def _busy(self, why: str) -> Refused:
        return Refused(
            529,
            f"All replicas of model {self._model.name!r} are busy: {why}.",
            code="all_busy",
            headers={"retry-after": "2"},
        )

    async def _wait_for_ready(self, choice: Choice) -> None:
        directory = self._desk.directory
        model = directory.fleet.models.get(self._model.id)
        if model is None or model.deleted:
            raise Refused(404, f"Model {self._model.name!r} was deleted.", param="model", code="model_not_found")
        outlook = directory.prospect(model)
        shunned = next(iter(choice.refusals.values()), None)
        left = self._loading_until - self._desk.now()
        if shunned is None and not outlook.hopeful:
            raise Refused(503, outlook.sentence, code="not_served", headers={"retry-after": "10"})
        what = outlook.sentence if shunned is None else f"Model {model.name!r} can't be reached: {shunned}."
        if left <= 0:
            raise Refused(503, what, code="not_ready", headers=_RETRY)
        if not self._desk.loading.enter(model.id):
            full = f"{what.rstrip('.')}, and {self._desk.limits.loading_line} requests wait for it already."
            raise Refused(503, full, code="not_ready", headers=_RETRY)
        try:
            await directory.changed.wait(timeout=min(left, _LOOK))
        finally:
            self._desk.loading.leave(model.id)
