"""Sends the files of a model to the mesh that waits for them: in parts, from where it has them to, through cuts."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from weft_contracts.content_range import ContentRange, said
from weft_contracts.uploads import CHECKSUM_HEADER, UPLOADS

from weft_client.failure import Failure
from weft_client.gateway import Gateway, Refused, Unreachable, segment
from weft_client.local_files import LocalFile, LocalModel

CHUNK: Final = 16 << 20
TRIES: Final = 12
"""In a row, of a gateway that can't be reached: some three minutes."""
PATIENCE_S: Final = 600.0
"""While not a byte more is there: a node may install an engine first."""
_PIECE: Final = 64 << 10
"""What one write gives to the wire, which has `_SILENCE_S` for it."""
_SILENCE_S: Final = 120.0
_LAST_S: Final = 660.0
"""For the answer to the last part: the node then writes all to its disk for good."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Sent:
    """How far it is: bytes of all files that are in the mesh, of how many; why it waits, where it does."""

    there: int
    size: int
    waits: str = ""


class Sending:
    """Of one model to one gateway."""

    def __init__(
        self,
        gateway: Gateway,
        upload: str,
        model: LocalModel,
        told: Callable[[Sent], None] = lambda _: None,
        *,
        chunk: int = CHUNK,
        patience_s: float = PATIENCE_S,
        told_after_s: float = 3.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`upload`: as the deploy's answer names it. `told` hears of every piece, and why it waits, where that takes
        longer than `told_after_s`."""
        self._gateway = gateway
        self._upload = upload
        self._model = model
        self._told = told
        self._chunk = chunk
        self._patience_s = patience_s
        self._told_after_s = told_after_s
        self._sleep = sleep
        self._before = 0
        self._there = 0
        self.sent = 0
        """Bytes that went over the wire."""

    @property
    def progress(self) -> Sent:
        """As it is now."""
        return Sent(self._before + self._there, self._model.size)

    def run(self) -> None:
        """Send what the mesh lacks; nothing, where it has all. Raises Failure."""
        for file in self._model.files:
            self._send(file)
            self._before, self._there = self._before + file.said.size, 0
            self._told(self.progress)

    def _send(self, file: LocalFile) -> None:
        asks, away, wrong = True, 0, False
        since = time.monotonic()
        while True:
            try:
                there = self._there
                whole = self._ask(file) if asks else self._part(file)
                if whole:
                    return
                asks, away = False, 0
                if self._there > there:
                    since = time.monotonic()
                elif time.monotonic() - since > self._patience_s:
                    raise Failure(f"the mesh takes nothing of {file.path}: {self._on()}")
            except Refused as refused:
                self._lost(file, refused, since)
                if refused.status == 400:
                    if wrong:
                        raise
                    wrong, since = True, time.monotonic()  # the node's machine may have lost what it had taken
                asks = True
                self._wait(str(refused), _AGAIN_S, since)
            except Unreachable as gone:
                away, asks = away + 1, True
                if away >= TRIES:
                    raise Failure(f"{gone}; {self._on()}") from None
                self._wait(str(gone), min(_PAUSE_S * 2 ** (away - 1), _LONGEST_PAUSE_S), since)

    def _lost(self, file: LocalFile, refused: Refused, since: float) -> None:
        """Raises Failure where asking again is in vain."""
        if refused.status not in (400, 408, 416, 502, 503):
            raise refused
        if file.changed:
            raise Failure(f"{file.path} has changed since it was hashed: deploy it again") from None
        if time.monotonic() - since > self._patience_s:
            raise Failure(f"{refused}; that is so for {self._patience_s:.0f} s: {self._on()}") from None

    def _wait(self, why: str, seconds: float, since: float) -> None:
        """Tell why, unless it may be over in a moment."""
        now = self.progress
        told = time.monotonic() - since >= self._told_after_s
        self._told(Sent(now.there, now.size, why if told else ""))
        self._sleep(seconds)

    def _on(self) -> str:
        now = self.progress
        return f"{now.there} of {now.size} bytes are there, and the same command goes on"

    def _ask(self, file: LocalFile) -> bool:
        return self._put(file, ContentRange(file.said.size), _SILENCE_S)

    def _part(self, file: LocalFile) -> bool:
        """The next one. Raises Failure for a file that isn't what was hashed."""
        if file.changed:
            raise Failure(f"{file.path} has changed since it was hashed: deploy it again")
        size, start = file.said.size, self._there
        end = min(size, start + self._chunk)
        return self._put(file, ContentRange(size, start, end), _LAST_S if end == size else _SILENCE_S)

    def _put(self, file: LocalFile, range: ContentRange, timeout_s: float) -> bool:
        """Whether the file is there, whole."""
        headers = {
            "Content-Range": said(range),
            "Content-Length": str(range.end - range.start),
            "Content-Type": "application/octet-stream",
            CHECKSUM_HEADER: file.said.checksum,
        }
        path = f"{UPLOADS}{segment(self._upload)}/{segment(file.said.name)}"
        status, body = self._gateway.send(path, self._pieces(file, range), headers, timeout_s=timeout_s)
        self._there = file.said.size if status == 200 else min(int(body["bytes"]), file.said.size)
        self._told(self.progress)
        return status == 200

    def _pieces(self, file: LocalFile, range: ContentRange) -> Iterator[bytes]:
        """Raises Failure where the file is shorter than it was."""
        left = range.end - range.start
        if not left:
            return
        try:
            with file.path.open("rb") as opened:
                opened.seek(range.start)
                while left:
                    piece = opened.read(min(_PIECE, left))
                    if not piece:
                        raise Failure(f"{file.path} is shorter than it was: deploy it again")
                    yield piece
                    left -= len(piece)
                    self.sent += len(piece)
                    self._told(Sent(self._before + range.end - left, self._model.size))
        except OSError as error:
            raise Failure(f"{file.path} can't be read: {error.strerror or error}") from None
