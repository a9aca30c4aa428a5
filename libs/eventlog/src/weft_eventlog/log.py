"""The event log: append under guards with safe retries, and read in order.

Cost: one awaited commit about 1 ms on one server with `sync_interval: always`; an atomic batch about 6 ms
whatever its size up to 1,000; reading about 10 µs a commit plus 2 µs a fact.
"""

import copy
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, cast

from nats.aio.client import Client
from nats.errors import ConnectionClosedError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeout
from nats.js.api import RawStreamMsg
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential
from weft_contracts import headers as h
from weft_contracts.codec import encode, encode_headers
from weft_contracts.commit import Commit, Recorded
from weft_contracts.ids import EventId
from weft_contracts.topology import EVENTS

from weft_eventlog import guards as g
from weft_eventlog.errors import Conflict, ForeignDuplicate, LogFull, LogUnavailable
from weft_eventlog.log_size import LogSize, log_size
from weft_eventlog.message_buffer import MessageBuffer
from weft_eventlog.message_sanitizer import sanitize_messages
from weft_eventlog.ordered_consumer import next_sequence, read_between, subscribe
from weft_eventlog.quick_headers import use_quick_headers

_ONE_TRY = 5.0
"""Seconds that one try waits for the server's answer."""
MAX_BATCH = 1000


class _Busy(Exception):
    """The server asks to try again: too many batches are open, it has no leader yet, or a write is not settled."""


_RETRIED = (
    NatsTimeout,
    NoRespondersError,
    NoStreamResponseError,
    ServiceUnavailableError,
    ConnectionClosedError,
    _Busy,
)


def new_event_id() -> EventId:
    """128 random bits: nobody can take an id before its commit is sent."""
    return EventId(secrets.token_hex(16))


def _guards_itself(commit: Commit) -> bool:
    """Only then does a conflict's sequence bound where this commit may stand."""
    return commit.guard is not None and commit.guard.aggregate == commit.aggregate


def _id_of(message: RawStreamMsg) -> EventId:
    headers = cast(dict[str, str], message.headers or {})
    return EventId(headers.get(h.EVENT_ID, ""))


Find = Callable[[Commit, int | None], Awaitable[int | None]]
"""Where a commit stands after its guard, up to a sequence (None: the head); None if it does not stand there."""


Trace = Callable[[Sequence[Commit]], AbstractContextManager[str]]
"""Records an append as a span and gives the trace parent for the commits' headers."""


class EventLog:
    """One connection's view of the log. `actor` is the opaque name under which it appends."""

    def __init__(self, client: Client, actor: str, find: Find | None = None, trace: Trace | None = None) -> None:
        """`find` looks a commit up for those who may not read the stream; see `Find`. `trace`: none are recorded."""
        use_quick_headers(client)
        sanitize_messages(client)
        self._client = client
        self._find = find or self._find_at_leader
        self._js = client.jetstream(timeout=_ONE_TRY)
        self._actor = actor
        self._trace = trace

    def acting_as(self, actor: str) -> "EventLog":
        """The same log, for what this actor asks for."""
        other = copy.copy(self)
        other._actor = actor
        return other

    async def append(self, *commits: Commit, timeout: float = 20.0) -> tuple[int, ...]:
        """Append commits, all or none, and return their sequences.

        Retries for `timeout` seconds under the same event ids, so that a commit lands once.
        Raises Conflict, LogUnavailable, LogFull, CommitTooLarge, and ValueError for an empty or huge batch.
        """
        if not 1 <= len(commits) <= MAX_BATCH:
            raise ValueError(f"a batch takes 1 to {MAX_BATCH} commits, not {len(commits)}")
        named = [c if c.event_id else replace(c, event_id=new_event_id()) for c in commits]
        if self._trace is None:
            return await self._append(named, timeout, "")
        with self._trace(named) as traceparent:
            return await self._append(named, timeout, traceparent)

    async def _append(self, named: Sequence[Commit], timeout: float, traceparent: str) -> tuple[int, ...]:
        bodies = [encode(commit) for commit in named]
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(_RETRIED),
                wait=wait_random_exponential(multiplier=0.05, max=2),
                stop=stop_after_delay(timeout),
                reraise=True,
            ):
                with attempt:
                    if len(named) == 1:
                        return (await self._append_one(named[0], bodies[0], traceparent),)
                    return await self._append_batch(named, bodies, traceparent)
        except _RETRIED as error:
            raise LogUnavailable(f"the log did not answer for {timeout:.0f} s: {error!r}") from error
        raise AssertionError("unreachable")

    async def head(self) -> int:
        """The log's last sequence; 0 for an empty log. Raises LogUnavailable."""
        return (await self.identity())[1]

    async def identity(self) -> tuple[str, int]:
        """What tells this stream from another of its name, and its last sequence. Raises LogUnavailable."""
        try:
            info = await self._js.stream_info(EVENTS.name)
        except (*_RETRIED, NotFoundError) as error:
            raise LogUnavailable(f"the log can't be asked for its head: {error!r}") from error
        return str(info.created), int(info.state.last_seq)

    async def size(self) -> LogSize:
        """How large it is, and how large it may become. Raises LogUnavailable."""
        return await log_size(self._js)

    async def event_id_at(self, sequence: int) -> EventId | None:
        """The event id of the commit at a sequence, from the leader; None if there is none."""
        try:
            message = await self._js.get_msg(EVENTS.name, seq=sequence)
        except NotFoundError:
            return None
        except _RETRIED as error:
            raise LogUnavailable(f"the log can't be read at {sequence}: {error!r}") from error
        return _id_of(message)

    def read(self, *filters: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Recorded]:
        """The commits after a sequence up to another (default: the head at the call), in order.

        Raises LogUnavailable when nothing comes for 5 s.
        """
        return read_between(self._client, self._js, filters or EVENTS.subjects, after=after, upto=upto)

    def buffer(self, size: int) -> MessageBuffer:
        """Where messages wait for a projection; the server is held back above `size`."""
        return MessageBuffer(self._client, size)

    async def subscribe(
        self, buffer: MessageBuffer, filters: Sequence[str], after: int
    ) -> JetStreamContext.PushSubscription:
        """An ordered push subscription from behind a sequence, for a projection."""
        return await subscribe(self._client, self._js, buffer, filters, after)

    async def anything_after(self, sequence: int, filters: Sequence[str]) -> bool:
        """Whether the log holds a commit of these filters behind a sequence, by the leader. Raises LogUnavailable."""
        return await next_sequence(self._js, filters, sequence) is not None

    async def _append_one(self, commit: Commit, body: bytes, traceparent: str) -> int:
        subject = commit.aggregate.subject(commit.facts[0].type)
        event_id = commit.event_id
        assert event_id is not None
        headers = encode_headers(commit, event_id, self._actor, traceparent) | g.guard_headers(commit.guard)
        try:
            ack = await self._js.publish(subject, body, stream=EVENTS.name, headers=headers)
        except APIError as error:
            return (await self._after_refusal((commit,), error))[0]
        if ack.duplicate and await self._find(commit, int(ack.seq)) != ack.seq:
            raise ForeignDuplicate(f"event id {event_id} stands at {ack.seq}, and it is not this commit")
        return int(ack.seq)

    async def _append_batch(
        self, commits: Sequence[Commit], bodies: Sequence[bytes], traceparent: str
    ) -> tuple[int, ...]:
        batch = secrets.token_hex(16)
        for place, (commit, body) in enumerate(zip(commits, bodies, strict=True), 1):
            subject = commit.aggregate.subject(commit.facts[0].type)
            assert commit.event_id is not None
            headers = encode_headers(commit, commit.event_id, self._actor, traceparent)
            headers |= g.guard_headers(commit.guard)
            headers |= {g.BATCH_ID: batch, g.BATCH_SEQUENCE: str(place)}
            if place < len(commits):
                await self._client.publish(subject, body, headers=headers)
                continue
            reply = await self._client.request(subject, body, timeout=_ONE_TRY, headers=headers | {g.BATCH_COMMIT: "1"})
            answer: dict[str, Any] = json.loads(reply.data)
            if "error" in answer:
                try:
                    APIError.from_error(answer["error"])  # raises the kind that its code calls for
                except APIError as error:
                    return await self._after_refusal(tuple(commits), error)
            last = int(answer["seq"])
            return tuple(range(last - len(commits) + 1, last + 1))
        raise AssertionError("unreachable")

    async def _after_refusal(self, commits: tuple[Commit, ...], error: APIError) -> tuple[int, ...]:
        """The sequences if an earlier try of ours had landed after all; otherwise the error by its name."""
        code = error.err_code
        if code in g.FULL:
            raise LogFull(f"the log refuses new facts: {error.description}") from error
        if code in g.BUSY or code in g.IN_FLIGHT:
            raise _Busy(error.description) from error
        if code not in g.WRONG_LAST_SEQUENCE and code != g.DUPLICATE_IN_BATCH:
            raise error
        upto = g.actual_sequence(error.description or "") if len(commits) == 1 and _guards_itself(commits[0]) else None
        last = await self._find(commits[-1], upto)
        if last is not None:
            return tuple(range(last - len(commits) + 1, last + 1))
        raise Conflict(tuple(c.guard for c in commits if c.guard is not None)) from error

    async def _find_at_leader(self, commit: Commit, upto: int | None) -> int | None:
        """Where our commit stands, read from the leader; None if it does not stand after its guard.

        Another writer may have followed us, so every event after the guard is looked at, not just the last.
        """
        sequence = (commit.guard.sequence if commit.guard else 0) + 1
        bound = await self.head() if upto is None else upto
        while sequence <= bound:
            try:
                stored = await self._js.get_msg(EVENTS.name, seq=sequence, subject=commit.aggregate.filter, next=True)
            except NotFoundError:
                return None
            if stored.seq is None or stored.seq > bound:
                return None
            if _id_of(stored) == commit.event_id:
                return stored.seq
            sequence = stored.seq + 1
        return None
