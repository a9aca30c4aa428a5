"""A projection: the log, in order, folded in batches, for as long as the process lives.

The subscription's callback only enqueues; up to 1,000 commits are folded at once. A fold's own error ends the
projection, silence of the log does not. What must not be decided from is said in `halted` and `suspects`.
"""

import asyncio
import contextlib
import gc
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact, Unknown, Unreadable, Voided
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.formats import outdated
from weft_contracts.ids import EventId
from weft_contracts.subjects import Aggregate
from weft_contracts.suspects import Suspects
from weft_contracts.topology import EVENTS

from weft_eventlog import ordered_consumer
from weft_eventlog.cancelling import end_if_cancelled
from weft_eventlog.delivered import Delivered, recorded
from weft_eventlog.errors import LogUnavailable
from weft_eventlog.log import EventLog
from weft_eventlog.snapshots import Mark, Snapshots
from weft_eventlog.snapshots.mark import MAX_SUSPECTS

Fold = Callable[[Sequence[Recorded]], Awaitable[None] | None]
BATCH = 1000
_SPECIAL: frozenset[type[Fact]] = frozenset((Unknown, Unreadable, Voided, FormatRaised))
_LOOK_AFTER = 5.0
"""Seconds of silence after which the projection asks the log whether it really has nothing new."""
COLLECTED_AFTER = (50_000, 20, 100)
"""Python's own (700, 10, 10) looks through a batch many times while it is made: 40 % of a long fold's CPU time.
What a fold throws away has no cycles; memory is the same."""
_WHY = 300
"""Characters that a snapshot keeps of why a commit can't be read."""
_log: Any = structlog.get_logger(part="weft.projection")


class Projection:
    """Folds the commits of some filters, from after a checkpoint on. One `run` per projection."""

    def __init__(
        self,
        log: EventLog,
        *,
        name: str,
        filters: Sequence[str] = EVENTS.subjects,
        fold: Fold,
        after: int = 0,
        event_id: EventId | None = None,
        identity: str | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        """`event_id` and `identity` mark the checkpoint `after`: where they differ, the stream was rewound.

        With `snapshots`, of a fold of the whole log, it goes on from the newest one that fits.
        """
        self._log = log
        self._filters = tuple(filters)
        self._fold = fold
        self.name = name
        self.position = after
        """Sequence of the last folded commit."""
        self.event_id = event_id
        self.identity = identity
        self.snapshots = snapshots
        self.caught_up = asyncio.Event()
        self.halted: str | None = None
        """Why nothing may be decided from this projection; None if it may."""
        self.outdated: str | None = None
        """Why this release is too old for the log, whose upgrade to a later one is finished; None: it isn't."""
        self._suspects = Suspects()
        self._progress = asyncio.Condition()
        self._head = 0
        self._seen = 0
        """The last sequence that the log was heard to have."""
        self._consumer_sequence = 0
        self._folded: tuple[int, EventId] | None = None
        """Sequence and event id of the commit that the fold's memory stands at; None while it changes."""

    @property
    def mark(self) -> Mark | None:
        """Where the fold's memory stands now, for a snapshot of it; None where there is none to be taken."""
        if self._folded is None or self.identity is None or self.halted is not None:
            return None
        suspects = [(aggregate, sequence, why[:_WHY]) for aggregate, sequence, why in self._suspects.marks]
        return Mark(self.identity, *self._folded, tuple(suspects)) if len(suspects) <= MAX_SUSPECTS else None

    @property
    def behind(self) -> int:
        """Commits that the log is known to hold behind what was folded; while it is away, as was last heard."""
        return max(0, self._seen - self.position)

    @property
    def filters(self) -> tuple[str, ...]:
        """What it folds of the log."""
        return self._filters

    @property
    def suspects(self) -> Mapping[Aggregate, str]:
        """Aggregates with a commit that could not be read, and why. Nothing is decided about them."""
        return self._suspects.why

    @property
    def suspect_marks(self) -> list[tuple[Aggregate, int, str]]:
        """What `suspects` rests on: enough to go on from here."""
        return self._suspects.marks

    async def run(self) -> None:
        """Fold for ever. Ends only by cancellation or by an error of the fold itself.

        Makes this process look for garbage cycles less often.
        """
        gc.set_threshold(*COLLECTED_AFTER)
        begun = self.snapshots is None
        while True:
            end_if_cancelled()
            try:
                begun = begun or await self._begin()
                await self._verify()
                await self._follow()
            except (LogUnavailable, NatsError, JetStreamError) as error:
                _log.info("log not reached", projection=self.name, error=repr(error))
                await asyncio.sleep(0.5)

    async def wait_for(self, sequence: int, timeout: float = 5.0) -> None:
        """Return once everything up to `sequence` is folded: read your own writes. Raises TimeoutError."""
        async with asyncio.timeout(timeout), self._progress:
            await self._progress.wait_for(lambda: self.position >= sequence)

    async def moved(self, timeout: float) -> bool:
        """Return after the next folded batch (True), or after `timeout` seconds without one (False)."""
        before = self.position
        try:
            async with asyncio.timeout(timeout), self._progress:
                await self._progress.wait_for(lambda: self.position > before)
        except TimeoutError:
            return False
        return True

    async def _begin(self) -> bool:
        """Go on from a snapshot, if there is one. True once that is settled."""
        assert self.snapshots is not None
        mark = await self.snapshots.take_up(self._log)
        if mark is not None:
            self.position, self.event_id, self.identity = mark.sequence, mark.event_id, mark.identity
            self._folded = (mark.sequence, mark.event_id)
            self._suspects = Suspects(mark.suspects)
        return True

    async def _verify(self) -> None:
        """Refuse a stream that is not the one folded so far, or that has lost its end."""
        identity, self._head = await self._log.identity()
        self._seen = self._head
        if self.identity is not None and identity != self.identity and self.position:
            self._halt("the log is another stream than the one folded so far")
        elif self._head < self.position:
            self._halt(f"the log ends at {self._head}, and {self.position} was folded already")
        elif self.position and self.event_id is not None:
            found = await self._log.event_id_at(self.position)
            if found is not None and found != self.event_id:
                self._halt(f"another event stands at {self.position} than the one folded")
        self.identity = identity
        if self._head <= self.position:
            self.caught_up.set()

    def _halt(self, why: str) -> None:
        if self.halted is None:
            _log.error("projection halted", projection=self.name, why=why)
        self.halted = self.outdated or why  # what is newer follows from it

    async def _follow(self) -> None:
        buffer = self._log.buffer(ordered_consumer.QUEUE)
        subscription = await self._log.subscribe(buffer, self._filters, self.position)
        self._consumer_sequence = 0
        try:
            while True:
                end_if_cancelled()
                try:
                    messages = await buffer.take(BATCH, _LOOK_AFTER)
                except TimeoutError:
                    await self._verify()
                    if await self._log.anything_after(self.position, self._filters):
                        return  # the consumer is gone or deaf: make a new one
                    self.caught_up.set()
                    continue
                await self._take(messages)
        finally:
            with contextlib.suppress(NatsError, JetStreamError):
                await subscription.unsubscribe()

    async def _take(self, messages: Sequence[Delivered]) -> None:
        commits: list[Recorded] = []
        last = messages[-1].sequence
        self._seen = max(self._seen, last + messages[-1].pending)
        for message in messages:
            place = message.place
            if place != self._consumer_sequence + 1 and place != 1:
                self._halt(f"a hole in the log's delivery before {message.sequence}")
            self._consumer_sequence = place
            if message.sequence <= self.position:
                continue  # a consumer made anew may repeat
            commit = recorded(message)
            if commit is not None:
                commits.append(commit)
        if commits:
            self._folded = None
            outcome = self._fold([self._readable(commit) for commit in commits])
            if inspect.isawaitable(outcome):
                await outcome
            self._folded = (commits[-1].sequence, commits[-1].event_id)
        async with self._progress:
            if last > self.position:
                self.position = last
                if commits:
                    self.event_id = commits[-1].event_id
            if self.position >= self._head:
                self.caught_up.set()
            self._progress.notify_all()
        if self.caught_up.is_set() or messages[-1].pending:
            return
        # the consumer's word alone is not enough: on three servers it may sit on one that lags
        if not await self._log.anything_after(self.position, self._filters):
            self.caught_up.set()

    def _readable(self, commit: Recorded) -> Recorded:
        """The commit with the facts that a fold may see. None may be left: the aggregate has moved all the same."""
        if _SPECIAL.isdisjoint(map(type, commit.facts)):
            return commit
        kept: list[Any] = []
        for fact in commit.facts:
            match fact:
                case Unreadable() | Voided():
                    if self._suspects.note(commit, fact):
                        self._tell(commit)
                case Unknown(skippable=True):
                    pass
                case Unknown(type=type_, v=version):
                    self._halt(
                        f"{commit.aggregate.kind}.{type_} version {version} at {commit.sequence} "
                        "is newer than this service: upgrade it"
                    )
                case FormatRaised():
                    if self.outdated is None and (why := outdated(fact)) is not None:
                        self.outdated = why
                        self._halt(why)
                    kept.append(fact)
                case _:
                    kept.append(fact)
        return replace(commit, facts=tuple(kept))

    def _tell(self, commit: Recorded) -> None:
        aggregate, why = commit.aggregate, self._suspects.why.get(commit.aggregate)
        _log.error(
            "event can't be read", projection=self.name, aggregate=str(aggregate), sequence=commit.sequence, why=why
        )
