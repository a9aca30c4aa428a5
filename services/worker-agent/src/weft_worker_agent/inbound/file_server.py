"""`GET /files/<files>/<checksum>`: a file of a model, for nodes that need it, by ranges and as far as it is here."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from weft_contracts.certificates import node_role
from weft_contracts.ids import NodeId
from weft_files.checksum import Checksum
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.byte_ranges import NotThere, asked_range
from weft_worker_agent.inbound.problem import problem
from weft_worker_agent.outbound.files.offered_files import OfferedFile, OfferedFiles, content_sum
from weft_worker_agent.outbound.mesh.readers import NotAReader, NotKnown, Readers
from weft_worker_agent.outbound.mesh.signed_words import NODE, NONCE, SIGNATURE, Words

READERS: Final = 8
"""Requests that are answered at once, unless a setting says another number."""
EACH: Final = 2
"""Of them, one node's."""
MOST: Final = 64 << 20
"""Bytes of one answer, so that who may read is asked again."""
WAIT_S: Final = 20.0
"""So long a range is waited for that isn't here yet."""
LOOK_S: Final = 0.1
CHUNK: Final = 1 << 20
CHUNK_S: Final = 30.0
"""A reader that takes no chunk in this time is given up."""
LEAST: Final = 4096
"""Bytes a second over a whole answer: whatever holds it up longer, a disk or a reader, keeps no turn for ever."""
_DIGEST: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)

_log: Any = get_logger("weft.files")


class FileServer:
    """The route. Errors are problem bodies: 401 without words, 403 for who may not, 404, 413, 416, 503 for later."""

    def __init__(
        self,
        offered: OfferedFiles,
        readers: Readers,
        *,
        roles: Callable[[Scope], frozenset[str]] | None,
        most: int = READERS,
        most_bytes: int = MOST,
        wait_s: float = WAIT_S,
    ) -> None:
        """`roles` of a caller's certificate, which must name the node whose words it brings; None: the mesh speaks
        plainly. `most`: requests at once; `most_bytes` of an answer; `wait_s`: for what is still coming."""
        self._offered = offered
        self._readers = readers
        self._roles = roles
        self._most = most
        self._wait_s = wait_s
        self._most_bytes = most_bytes
        self._busy: Counter[NodeId] = Counter()
        """Requests that are answered now, by the node that asks."""
        self.route = Route("/files/{files}/{checksum}", self._give, methods=["GET"])

    async def _give(self, request: Request) -> Response:
        files, checksum = request.path_params["files"], content_sum(request.path_params["checksum"])
        words = Words.of(request.headers)
        if words is None:
            return problem(401, f"a node's signed words are missing: {NODE}, {NONCE}, {SIGNATURE}")
        if self._roles is not None and node_role(words.node) not in self._roles(request.scope):
            return problem(403, f"the caller's certificate does not name the node {words.node}, whose words it brings")
        if not _DIGEST.fullmatch(files) or checksum is None:
            return problem(404, "want /files/DIGEST/CHECKSUM: 16 hexadecimal digits, and blake3:…, sha256:… or git:…")
        try:
            await self._readers.check(files, words, known=self._roles is not None)
        except NotAReader as refused:
            return problem(403, str(refused))
        except NotKnown as error:
            return _later(str(error))
        node = words.node
        if (busy := self._busy.total()) >= self._most:
            return _later(f"{busy} requests for files are answered already")
        if self._busy[node] >= EACH:
            return _later(f"{EACH} requests for files of the node {node} are answered already")
        self._busy[node] += 1
        given = False
        try:
            answer = await self._answer(request, files, checksum, partial(self._done, node))
            given = isinstance(answer, _Bytes)
            return answer
        finally:
            if not given:
                self._done(node)

    async def _answer(self, request: Request, files: str, checksum: Checksum, done: Callable[[], None]) -> Response:
        clock = asyncio.get_running_loop().time
        until = clock() + self._wait_s
        while True:
            file = await self._offered.open(files, checksum)
            if file is None:
                return problem(404, f"there is no {checksum} of the files {files} on this node")
            given = False
            try:
                answer = await self._of(request, file, done)
                given = isinstance(answer, _Bytes)
                if answer is not None:
                    return answer
                if clock() >= until:
                    return _later(f"{checksum} is still coming to this node")
            finally:
                if not given:
                    file.close()
            await asyncio.sleep(LOOK_S)

    async def _of(self, request: Request, file: OfferedFile, done: Callable[[], None]) -> Response | None:
        """None while what is wanted isn't here."""
        try:
            span = asked_range(request.headers.get("range"), file.size)
        except NotThere:
            detail = f"the file has {file.size} bytes, and the range begins behind them"
            return problem(416, detail, {"content-range": f"bytes */{file.size}"})
        if span is None and file.size > self._most_bytes:
            detail = f"the file has {file.size} bytes: ask for a range of it, of which {self._most_bytes} are given"
            return problem(413, detail)
        start, end = span or (0, file.size)
        ahead = file.size if file.whole else await self._offered.threaded(lambda: file.ahead(start))
        if ahead < file.size and (ahead <= start if span is not None else True):
            return None
        headers = {"accept-ranges": "bytes", "content-type": "application/octet-stream", "cache-control": "no-store"}
        if span is not None:
            end = min(end, ahead, start + self._most_bytes)
            headers["content-range"] = f"bytes {start}-{end - 1}/{file.size}"
        headers["content-length"] = str(end - start)
        return _Bytes(self._offered, file, (start, end), 200 if span is None else 206, headers, done)

    def _done(self, node: NodeId) -> None:
        self._busy[node] -= 1
        if not self._busy[node]:
            del self._busy[node]


class _Bytes(Response):
    """A file's bytes in chunks, each read in a thread and handed on within a bound; then the file is closed."""

    def __init__(
        self,
        offered: OfferedFiles,
        file: OfferedFile,
        span: tuple[int, int],
        status: int,
        headers: dict[str, str],
        done: Callable[[], None],
    ) -> None:
        super().__init__(None, status)
        self.raw_headers = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        self._offered = offered
        self._file = file
        self._span = span
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._span[0] == self._span[1] or scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            within_s = answer_s(self._span[1] - self._span[0])
            try:
                async with asyncio.timeout(within_s):
                    await self._send(send, gone)
            except TimeoutError:
                _log.info("files not given to their end", why=f"they took longer than {within_s:g} s")
        finally:
            gone.cancel()
            self._file.close()
            self._done()

    async def _send(self, send: Send, gone: "asyncio.Task[None]") -> None:
        """What ends before its end has the connection closed by the server, so that nobody takes it for whole."""
        at, end = self._span
        while at < end and not gone.done():
            chunk = await self._offered.threaded(partial(self._file.read, at, min(CHUNK, end - at)))
            at += len(chunk)
            if not chunk:
                _log.info("files not given to their end", why="they were begun anew here")
                return
            try:
                async with asyncio.timeout(CHUNK_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": at < end})
            except TimeoutError:
                _log.info("files not given to their end", why=f"the reader took nothing for {CHUNK_S:g} s")
                return


def answer_s(length: int) -> float:
    """So many seconds an answer of so many bytes may take."""
    return max(CHUNK_S, length / LEAST)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _later(detail: str) -> Response:
    return problem(503, detail, {"retry-after": "1"})
