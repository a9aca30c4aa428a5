"""`/install`: what a machine that has no Weft fetches to join, by digest. Anybody may, so each answer is bounded."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from weft_gateway.domain.access import INSTALL
from weft_gateway.domain.refused import Refused

AT_ONCE = 64
"""Files that are sent at the same time; whoever comes beyond that is told to come again."""
OF_ONE = 8
"""Of them to one address: who installs fetches one after another."""
LONGEST_S = 1200.0
"""So long one file may take to be sent."""
BLOCK_S = 30.0
"""And so long a block of it: who takes none holds no place."""
_BLOCK = 1 << 18
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
_HEADERS = {"cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff"}


class Install:
    """Files of one folder, named by the digest of what they hold: whoever asks must know that already."""

    def __init__(self, folder: Path | None, *, at_once: int = AT_ONCE, of_one: int = OF_ONE) -> None:
        """`folder`: where they lie; None: there are none."""
        self._folder = folder
        self._at_once = at_once
        self._of_one = of_one
        self.sent: Counter[str] = Counter()
        """How many files are being sent, by who gets them."""
        self.router = APIRouter(include_in_schema=False)
        self.router.add_api_route(f"{INSTALL}{{digest}}.sh", self.script, methods=["GET", "HEAD"])
        self.router.add_api_route(f"{INSTALL}{{digest}}/{{name}}", self.file, methods=["GET", "HEAD"])

    async def script(self, request: Request, digest: str) -> Response:
        """The script that installs. Raises Refused, 404, 503."""
        return self._answer(request, digest, f"{digest}.sh")

    async def file(self, request: Request, digest: str, name: str) -> Response:
        """A file that it names. Raises Refused, 404, 503."""
        if not _NAME.fullmatch(name):
            raise _unknown()
        return self._answer(request, digest, f"{digest}/{name}")

    def _answer(self, request: Request, digest: str, path: str) -> Response:
        if self._folder is None or not _DIGEST.fullmatch(digest):
            raise _unknown()
        address = request.client.host if request.client else ""
        if self.sent.total() >= self._at_once or self.sent[address] >= self._of_one:
            what = "Too many machines are being installed at once; try again in 5 s."
            raise Refused(503, what, code="busy", headers={"retry-after": "5"})
        try:
            opened = (self._folder / path).open("rb")
        except OSError:
            raise _unknown() from None
        return _Sent(opened, digest, self.sent, address, head_only=request.state.head_only)


class _Sent(Response):
    """A file, sent while there is time. A client that is slower is cut off, and sees that it lacks some."""

    def __init__(self, opened: BinaryIO, digest: str, sent: Counter[str], address: str, *, head_only: bool) -> None:
        super().__init__(media_type="application/octet-stream", headers={**_HEADERS, "etag": f'"{digest}"'})
        self.headers["content-length"] = str(opened.seek(0, 2))
        opened.seek(0)
        self._opened = opened
        self._sent = sent
        self._address = address
        self._head_only = head_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._sent[self._address] += 1
        try:
            async with asyncio.timeout(LONGEST_S):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                while not self._head_only and (block := await asyncio.to_thread(self._opened.read, _BLOCK)):
                    async with asyncio.timeout(BLOCK_S):
                        await send({"type": "http.response.body", "body": block, "more_body": True})
                await send({"type": "http.response.body"})
        finally:
            self._sent[self._address] -= 1
            self._sent += Counter()  # keeps nobody who gets none
            self._opened.close()


def _unknown() -> Refused:
    return Refused(404, "There is nothing of this digest to install.", code="unknown_route")
