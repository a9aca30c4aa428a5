"""`GET /api/events`: the log in pages, or as server-sent events from any position and then live."""

import json
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from weft_api import Commit, CommitPage
from weft_contracts.commit import Recorded
from weft_contracts.subjects import EVENTS, KINDS, Aggregate, kind_filter
from weft_eventlog import EventLog, LogUnavailable, Projection

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import event_shape
from weft_gateway.inbound.admin.listing import MAX_SEQUENCE, Place
from weft_gateway.inbound.http.answer import Answer
from weft_gateway.inbound.http.auth_middleware import may_go_on
from weft_gateway.inbound.http.openapi_document import EVENT_STREAM, PROBLEMS
from weft_gateway.outbound.changes import away

FOLLOWERS = 64
"""Streams that are open at once."""
_QUIET_S = 15.0
"""A stream without events says that it lives."""


class Events:
    """Reading the log over HTTP."""

    def __init__(
        self, log: EventLog, projection: Projection, names: Callable[[Recorded], dict[str, str]] = lambda _: {}
    ) -> None:
        """`names`: what people call those whom a commit's key names."""
        self._log = log
        self._names = names
        self._projection = projection
        self._followers = 0
        self.stopping = False
        self.router = APIRouter(tags=["events"], responses=PROBLEMS)
        self.router.add_api_route(
            "/api/events", self.read, methods=["GET"], response_model=CommitPage, responses={200: EVENT_STREAM}
        )

    async def read(
        self,
        request: Request,
        after: Place = None,
        upto: Place = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        kind: Annotated[str | None, Query(max_length=20)] = None,
        key: Annotated[str | None, Query(max_length=81)] = None,
        last_event_id: Annotated[int | None, Header(ge=0, le=MAX_SEQUENCE)] = None,
    ) -> Response:
        """A page after a position (default: from the start), or with `Accept: text/event-stream` a live stream
        after a position (default: from now on). `kind` and `key` narrow it to a kind or to one aggregate."""
        filters = _filters(kind, key)
        if "text/event-stream" in request.headers.get("accept", ""):
            if self._followers >= FOLLOWERS:
                raise Refused(503, f"{FOLLOWERS} streams are open already.", code="too_many_streams")
            start = last_event_id if last_event_id is not None else after
            if start is None:
                start = self._projection.position
            headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
            return StreamingResponse(
                self._follow(start, filters, partial(may_go_on, request)),
                media_type="text/event-stream",
                headers=headers,
            )
        return Answer(await self._page(after or 0, upto, limit, filters))

    async def _page(self, after: int, upto: int | None, limit: int, filters: tuple[str, ...]) -> CommitPage:
        items: list[Commit] = []
        try:
            reading = self._log.read(*filters, after=after, upto=upto)
            async for commit in reading:
                items.append(event_shape(commit))
                if len(items) == limit:
                    break
            head = await self._log.head()
        except LogUnavailable:
            raise away() from None
        return {"items": items, "next": items[-1]["sequence"] if len(items) == limit else None, "head": head}

    async def _follow(
        self, position: int, filters: tuple[str, ...], may_go_on: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        """What there is, then what comes: the projection's progress says when to read on."""
        self._followers += 1
        try:
            yield b": weft events\n\n"
            while not self.stopping and may_go_on():
                head = self._projection.position
                if head > position:
                    try:
                        async for commit in self._log.read(*filters, after=position, upto=head):
                            shape: Commit = {**event_shape(commit), "names": self._names(commit)}
                            body = json.dumps(shape, separators=(",", ":"))
                            yield f"id: {commit.sequence}\nevent: commit\ndata: {body}\n\n".encode()
                            position = commit.sequence
                        position = head
                    except LogUnavailable:
                        yield b": the log is away\n\n"
                        await self._projection.moved(timeout=1.0)
                elif not await self._projection.moved(timeout=_QUIET_S):
                    yield b": quiet\n\n"
        finally:
            self._followers -= 1


def _filters(kind: str | None, key: str | None) -> tuple[str, ...]:
    if kind is None:
        if key is not None:
            raise Refused(400, "`key` needs `kind`.", param="key")
        return (f"{EVENTS}.>",)
    known = KINDS.get(kind)
    if known is None:
        raise Refused(400, f"`kind` is {kind!r}; it must be one of {', '.join(KINDS)}.", param="kind")
    if key is None:
        return (kind_filter(known),)
    if not all(part and part.replace("-", "").isalnum() for part in key.split(".")):
        raise Refused(400, f"`key` is {key!r}; it must be an id, or two joined by a dot.", param="key")
    return (Aggregate(known, key).filter,)
