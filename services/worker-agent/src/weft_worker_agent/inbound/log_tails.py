"""Log tails of this node's runs, by the replica's id: for the gateway, which hands them to people."""

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from weft_worker_agent.inbound.problem import problem
from weft_worker_agent.outbound.processes.host_log import MAX_LINES, HostLog, NoLog

FOLLOWERS = 16
"""Tails that are followed at once."""
DEFAULT_LINES = 100
_LOOK_S = 0.25
_QUIET_S = 15.0
"""A followed log in which nothing happens says that it lives."""
_LONGEST_S = 3600.0
"""Then whoever follows asks again."""


class LogTails:
    """`GET /logs/<replica>?tail=N&follow=true`.

    Plain lines; with `follow` server-sent events, a line each, `caught_up` behind the tail, and a comment every 15 s
    of silence. 404 for a replica that never ran here, 400 for what can't be meant, 503 when too many are followed.
    """

    def __init__(self, folder: Path, *, quiet_s: float = _QUIET_S, longest_s: float = _LONGEST_S) -> None:
        self._folder = folder
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._followers = 0
        self.route = Route("/logs/{replica}", self._read, methods=["GET"])

    async def _read(self, request: Request) -> Response:
        replica = request.path_params["replica"]
        tail, follow = request.query_params.get("tail", str(DEFAULT_LINES)), request.query_params.get("follow", "")
        if not (tail.isascii() and tail.isdigit() and len(tail) <= 5 and int(tail) <= MAX_LINES):
            return problem(400, f"`tail` is {tail[:20]!r}; it must be a number of lines from 0 to {MAX_LINES}")
        try:
            log = HostLog(self._folder, replica)
            text = await asyncio.to_thread(log.tail, int(tail))
        except NoLog:
            return problem(404, f"no run of {replica[:64]!r} has a log on this node")
        if follow.lower() not in ("1", "true", "yes"):
            return Response(text, media_type="text/plain")
        if self._followers >= FOLLOWERS:
            return problem(503, f"{FOLLOWERS} logs are followed on this node already")
        return StreamingResponse(self._follow(log, text), media_type="text/event-stream")

    async def _follow(self, log: HostLog, text: bytes) -> AsyncGenerator[bytes]:
        self._followers += 1
        try:
            started = said = time.monotonic()
            yield b": log\n\n" + _events(text) + b"event: caught_up\ndata:\n\n"
            while (now := time.monotonic()) - started < self._longest_s:
                try:
                    text = await asyncio.to_thread(log.more)
                except NoLog:  # being renewed, or forgotten as one of the oldest
                    text = b""
                if text:
                    said = now
                    yield _events(text)
                elif now - said >= self._quiet_s:
                    said = now
                    yield b": quiet\n\n"
                if not text:
                    await asyncio.sleep(_LOOK_S)
        finally:
            self._followers -= 1


def _events(text: bytes) -> bytes:
    """Lines as server-sent events, which are UTF-8 and in which a carriage return would end a line."""
    lines = text.decode(errors="replace").replace("\r", " ").split("\n")[:-1]
    return "".join(f"data: {line}\n\n" for line in lines).encode()
