"""Files that somebody sends to this node, for a replica that waits for them: by the model's files and a file's name."""

import asyncio
import contextlib
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from weft_contracts.content_range import BadRange, ContentRange, content_range, range_there
from weft_contracts.facts.source import SourceFile
from weft_contracts.uploads import CHECKSUM_HEADER
from weft_files.faults import Mismatch, NoRoom
from weft_runtime.logs import get_logger

from weft_worker_agent.inbound.problem import problem
from weft_worker_agent.outbound.files.arrivals import LEAST, Arrival, Arrivals, Ended, Misplaced
from weft_worker_agent.outbound.files.model_fetches import ModelFetches

AT_ONCE: Final = 16
"""Requests that bring bytes."""
SILENCE_S: Final = 60.0
_BUFFER: Final = 1 << 20
_SOON: Final = {"retry-after": "1"}

_log: Any = get_logger("weft.uploads")


class Uploads:
    """`PUT /uploads/<files>/<name>` with `content-range`: `bytes FIRST-LAST/TOTAL`, or `bytes */TOTAL` to ask.

    200 once the file is whole and verified; 308 while it isn't, with `range: bytes=0-LAST` of what is there; 416 for
    what doesn't begin behind it. 404 for what no replica here waits for, 409 for another content or size, 400 for a
    whole file that is not what was said, of which nothing is left then; 507 without room on the disk.

    Behind TLS it is for the gateways' certificates. In a plain mesh whoever reaches this server may send, as they may
    read its logs: they can bring no other content than what is waited for, and hold up no more than that file.
    """

    def __init__(self, arrivals: Arrivals, fetches: ModelFetches, *, silence_s: float = SILENCE_S) -> None:
        self._arrivals = arrivals
        self._fetches = fetches
        self._silence_s = silence_s
        self._running = 0
        self.route = Route("/uploads/{files}/{name}", self._put, methods=["PUT"])

    async def _put(self, request: Request) -> Response:
        files, name = request.path_params["files"], request.path_params["name"]
        try:
            range = content_range(request.headers.get("content-range", ""))
        except BadRange as bad:
            return problem(400, str(bad))
        listed = self._fetches.sent(files)
        file = next((each for each in listed or () if each.name == name), None)
        if file is None:
            return problem(404, f"no replica on this node waits for a file {name[:80]!r} of {files[:32]!r}")
        if (other := _another(file, range, request.headers.get(CHECKSUM_HEADER, ""))) is not None:
            return problem(409, other)
        if self._fetches.has(files, file):
            return _there(file.size, file.size, whole=True)
        arrival = self._arrivals.open(files, name)
        if arrival is None:
            return problem(503, f"{name} is not waited for yet: another file of the model comes first", _SOON)
        if arrival.verifies:
            return problem(503, f"{name} is all there, and is being verified", _SOON)
        if range.asks:
            return _there(arrival.there, file.size, whole=arrival.whole)
        if self._running >= AT_ONCE:
            return problem(503, f"{AT_ONCE} files are sent to this node already", _SOON)
        self._running += 1
        try:
            return await self._taken(request, arrival, name, range)
        finally:
            self._running -= 1

    async def _taken(self, request: Request, arrival: Arrival, name: str, range: ContentRange) -> Response:
        try:
            await self._take(request, arrival, range)
            if arrival.there == arrival.size:
                await arrival.finish()
        except Misplaced as misplaced:
            detail = f"{name} has {misplaced.there} bytes here, and what comes begins at {range.start}"
            return problem(416, detail, range_there(misplaced.there))
        except Mismatch as fault:
            _log.warning("a file that was sent is not what was said", name=name, why=str(fault))
            return problem(400, f"{name} is not what was said, and nothing of it was kept: {fault}")
        except TimeoutError:
            detail = f"{name} came too slowly: want {LEAST} bytes a second, and no silence of {self._silence_s:g} s"
            return problem(408, detail, {**range_there(arrival.there), "connection": "close"})
        except (NoRoom, OSError) as error:
            return problem(507, f"{name} can't be kept: {error}")
        except ValueError as error:
            return problem(400, str(error))
        except Ended:
            if not arrival.whole:
                return problem(404, f"{name} is not waited for any more", _SOON)
        except ClientDisconnect:
            _log.info("a sender left", name=name, there=arrival.there, size=arrival.size)
            return problem(400, f"{name} broke off")
        return _there(arrival.there, arrival.size, whole=arrival.whole)

    async def _take(self, request: Request, arrival: Arrival, range: ContentRange) -> None:
        """What comes is kept even where no more does. Raises TimeoutError, ClientDisconnect and what `take` does."""
        at, held = range.start, bytearray()

        async def keep() -> None:
            nonlocal at, held
            taken, held = held, bytearray()
            await arrival.take(at, taken)
            at += len(taken)

        if at != arrival.there:  # before its body is read
            raise Misplaced(arrival.there)
        stream = request.stream()
        try:
            async with asyncio.timeout(self._silence_s + (range.end - range.start) / LEAST):
                while True:
                    async with asyncio.timeout(self._silence_s):
                        piece = await anext(stream, None)
                    if piece is None:
                        break
                    held += piece
                    if at + len(held) > range.end:
                        raise ValueError(f"more bytes came than content-range says: want {range.end - range.start}")
                    if len(held) >= _BUFFER:
                        await keep()
        except (TimeoutError, ClientDisconnect):
            with contextlib.suppress(Misplaced, Ended):
                await keep()
            raise
        await keep()


def _another(file: SourceFile, range: ContentRange, checksum: str) -> str | None:
    """Why what is sent is another file than the one that is waited for."""
    if range.total != file.size:
        return f"{file.name} is to have {file.size} bytes, and one of {range.total} is sent: deploy it again"
    if checksum and checksum != file.checksum:
        return f"{file.name} is to be {file.checksum}, and {checksum[:80]!r} is sent: deploy it again"
    return None


def _there(there: int, size: int, *, whole: bool) -> Response:
    if whole:
        return JSONResponse({"bytes": size, "size": size})
    return JSONResponse({"bytes": there, "size": size}, 308, range_there(there))
