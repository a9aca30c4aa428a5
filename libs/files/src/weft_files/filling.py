"""Fills a partial file from one address: in one stream, or in several ranges at a time where it is large."""

import threading
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from blake3 import blake3
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from weft_files.address import Address
from weft_files.asking import Asking, Route, Trust
from weft_files.bounds import Bounds
from weft_files.connection import Sockets
from weft_files.faults import Cut
from weft_files.following import Following
from weft_files.head import Head, exceeds, read_head
from weft_files.partial import Partial, Version
from weft_files.reach import Reach
from weft_files.room import Reservation
from weft_files.wanted import Wanted


class Changed(Cut):
    """Another version of the file than the one that pieces are there of."""


class WholeAgain(Cut):
    """The server takes no ranges: one stream is left."""


class Filling:
    """One address's share in one transfer, in threads."""

    def __init__(
        self,
        address: Address,
        wanted: Wanted,
        partial: Partial,
        room: Reservation,
        *,
        reach: Reach,
        bounds: Bounds,
        sockets: Sockets,
        trust: Trust,
    ) -> None:
        self._address = address
        self._wanted = wanted
        self._partial = partial
        self._room = room
        self._bounds = bounds
        self._sockets = sockets
        self.own = blake3(f"{address.said}\n{address.url.partition('?')[0]}".encode()).hexdigest()
        self._route = Route()
        self._parts = (self._route, reach, bounds, sockets, trust)
        self._halt = threading.Event()
        self._readers = bounds.readers
        self._takes_ranges = True

    def fill(self, following: Following) -> None:
        """All that is missing, hashed. Raises Cut, Refused, NoRoom and Stopped."""
        if not self._partial.tells_content and not self._may_go_on():
            self._partial.clear()
        for attempt in Retrying(
            retry=retry_if_exception_type(Cut),
            stop=_Tries(self._partial, self._bounds.tries).are_over,
            wait=wait_random_exponential(multiplier=self._bounds.pause, max=self._bounds.most_pause),
            sleep=self._sockets.sleep,
            reraise=True,
        ):
            with attempt:
                try:
                    self._once(following)
                except Changed:
                    self._partial.clear()
                    raise

    def _may_go_on(self) -> bool:
        """Whether pieces of two requests are of one version, or found out if they aren't."""
        version = self._partial.version
        if self._partial.tells_content:
            return True
        return version is not None and version.address == self.own and version.etag != ""

    def _once(self, following: Following) -> None:
        partial, count = self._partial, self._abreast()
        if partial.size is None or partial.size == 0:
            self._stream(None, following)
        elif count:
            self._in_pieces(count, following)
        while partial.missing:
            span = partial.claim(None)
            if span is None:
                raise AssertionError("pieces are missing that somebody else has claimed")
            try:
                self._stream(span, following)
            finally:
                partial.release(span)
        following.catch_up(memoryview(bytearray(self._bounds.buffer)))

    def _stream(self, span: tuple[int, int] | None, following: Following) -> None:
        asking = Asking(self._address, *self._parts)
        try:
            self._get(asking, span, memoryview(bytearray(self._bounds.buffer)), following, beside=False)
        finally:
            asking.close()

    def _abreast(self) -> int:
        """How many read pieces at a time; 0: one stream. One alone from a node, which hands on what comes to it in the
        same order."""
        if not self._takes_ranges:
            return 0
        if self._address.node:
            return 1
        large = self._partial.missing >= self._bounds.parallel_from
        return self._readers if large and self._readers > 1 and self._may_go_on() else 0

    def _in_pieces(self, count: int, following: Following) -> None:
        """Readers take a piece each, from the front, and we hash beside them what is whole."""
        self._halt.clear()
        with ThreadPoolExecutor(count, thread_name_prefix="ranges") as threads:
            readers = {threads.submit(self._read_pieces, beside=count > 1) for _ in range(count)}
            buffer = memoryview(bytearray(self._bounds.buffer))
            try:
                while readers:
                    done, readers = wait(readers, timeout=self._bounds.look, return_when=FIRST_COMPLETED)
                    for each in done:
                        each.result()
                    following.catch_up(buffer)
            except BaseException as fault:
                self._halt.set()
                self._readers = max(1, count // 2)  # a server may bear fewer
                if not isinstance(fault, Cut):
                    self._sockets.cut_short()  # else the others end their pieces
                raise

    def _read_pieces(self, *, beside: bool) -> None:
        asking = Asking(self._address, *self._parts)
        buffer = memoryview(bytearray(self._bounds.buffer))
        try:
            while not self._halt.is_set() and (span := self._partial.claim(self._bounds.piece)) is not None:
                try:
                    self._get(asking, span, buffer, None, beside=beside)
                finally:
                    self._partial.release(span)
        finally:
            asking.close()

    def _get(
        self,
        asking: Asking,
        span: tuple[int, int] | None,
        buffer: memoryview,
        following: Following | None,
        *,
        beside: bool,
    ) -> None:
        """One request. `following` hashes what comes, unless that is done beside it; `beside`: others read, too."""
        partial = self._partial
        asked = None if span is None or span == (0, partial.size) else span
        answer = asking.get({} if asked is None else self._range(asked))
        head = read_head(answer, self._wanted, asked, self._route.etags)
        self._check_version(head, asked, beside=beside)
        connection = asking.connection
        assert connection is not None
        most = self._wanted.cap if head.end is None else head.end
        connection.expect(most - head.start)
        at = head.start
        while at < most:
            self._sockets.check()
            came = connection.read_into(answer, buffer[: min(len(buffer), most - at, partial.room_at(at))])
            if not came:
                if head.end is None:
                    break
                raise Cut(f"broke off after {at} of {most} bytes")
            if partial.size is None:
                self._room.need(at + came)
            if not partial.has(at):
                partial.write(at, buffer[:came])
            at += came
            if partial.size is None:
                partial.came = at
            elif at == partial.size or partial.room_at(at) == self._bounds.piece:
                partial.note(at, self.own)
                self._room.filled(partial.came)
                if following is not None:
                    following.catch_up(buffer)
        if at >= most and connection.read_into(answer, buffer[:1]):
            raise exceeds(self._wanted, most)
        if partial.size is None:
            partial.settle(at)

    def _range(self, span: tuple[int, int]) -> Mapping[str, str]:
        headers = {"range": f"bytes={span[0]}-{span[1] - 1}"}
        version = self._partial.version
        if version is not None and version.address == self.own and version.etag:
            headers["if-range"] = version.etag
        return headers

    def _check_version(self, head: Head, asked: tuple[int, int] | None, *, beside: bool) -> None:
        partial, ours = self._partial, Version(self.own, head.etag)
        known = partial.version
        if known is not None and known.address == self.own and known != ours and partial.pieces:
            raise Changed("has another version of the file now than when its first pieces came")
        if asked is not None and not head.partial:  # the whole file, where a range was asked for
            if beside:
                self._takes_ranges = False
                raise WholeAgain("sends the whole file where ranges of it are asked for")
            if not partial.tells_content:
                raise Changed("sends the whole file anew")
        partial.begin(ours)


class _Tries:
    """Ends after so many in a row that brought no new piece."""

    def __init__(self, partial: Partial, most: int) -> None:
        self._partial = partial
        self._most = most
        self._pieces = partial.pieces
        self._idle = 0

    def are_over(self, state: RetryCallState) -> bool:
        self._idle = 0 if self._partial.pieces > self._pieces else self._idle + 1
        self._pieces = self._partial.pieces
        return self._idle >= self._most
