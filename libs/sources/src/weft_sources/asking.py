"""One request to a source, answered within bounds: who may be asked, how long, how many bytes, how many redirects."""

import http.client
import ssl
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar
from urllib.parse import urljoin, urlsplit

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential
from weft_contracts.facts.source import MOST_URL
from weft_contracts.shown import shown
from weft_files.address import Address
from weft_files.asking import Asking, Route
from weft_files.bounds import Bounds
from weft_files.connection import Connection, Sockets
from weft_files.faults import Cut, Refused

from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings

T = TypeVar("T")
TRIES: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer; its body is read while the request's context is open."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    read: Callable[[int], bytes]
    """At most so many bytes of the body, fewer only at its end; a body that goes on behind them is left there."""

    def total(self) -> int | None:
        """Bytes of the whole file, as far as a range's answer or a whole one's says."""
        if self.status == 206:
            _, _, said = self.headers.get("content-range", "").partition("/")
        else:
            said = self.headers.get("content-length", "") if "transfer-encoding" not in self.headers else ""
        return int(said) if said.isascii() and said.isdigit() and len(said) <= 16 else None

    def etag(self) -> str:
        """A strong validator without its quotes, or nothing."""
        said = self.headers.get("etag", "")
        inner = said[1:-1]
        return inner if len(said) > 2 and said[0] == said[-1] == '"' and '"' not in inner and _visible(inner) else ""


def retried(work: Callable[[], T], said: str) -> T:
    """Do it at most three times while the other side breaks off. Raises SourceRefused, and SourceAway at the end."""
    try:
        for attempt in Retrying(
            retry=retry_if_exception_type(Cut),
            stop=stop_after_attempt(TRIES),
            wait=wait_random_exponential(0.1, max=1.0),
            reraise=True,
        ):
            with attempt:
                return work()
    except Cut as fault:
        raise SourceAway(f"{said} {fault}: it was asked {TRIES} times; see that this node reaches it") from None
    except Refused as fault:
        raise SourceRefused(f"{said} {fault}") from None
    raise AssertionError("tenacity raises after its last try")


@contextmanager
def ask(address: Address, settings: SourceSettings, *, first: int, last: int, most: int) -> Generator[Answer]:
    """GET the bytes `first` to `last` of what lies at an address; at most `most` bytes of body will be read.

    Raises Cut where a new try may help, and Refused.
    """
    asking = Asking(address, Route(), settings.reach, bounds_of(settings), Sockets(), _trust)
    try:
        answer = asking.get({"range": f"bytes={first}-{last}"})
        assert asking.connection is not None
        asking.connection.expect(most)
        yield Answer(answer.status, _headers(answer), _reader(asking.connection, answer))
    finally:
        asking.close()


def redirected(address: Address, answer: Answer, settings: SourceSettings) -> str:
    """Where an answer leads on, if it does and the operator's setting names that server; else empty. Raises Refused."""
    if answer.status not in _REDIRECTS:
        return ""
    try:
        target = urljoin(address.url, answer.headers.get("location", ""))
        parts = urlsplit(target)
        host, port = parts.hostname or "nowhere", parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError:
        raise Refused("sends a redirect to what is no URL") from None
    if not settings.reach.names(host, port):
        raise Refused(f"leads on to {shown(host)}: name that address itself, or the host in WEFT_SOURCES_ALLOW")
    if parts.query or len(target) > MOST_URL:
        raise Refused(f"leads on to a signed address at {shown(host)}: want one that stays, since a spec names it")
    return target


def bounds_of(settings: SourceSettings) -> Bounds:
    """How long one request of these settings may take in each of its phases."""
    wait = settings.timeout_s
    return Bounds(connect=min(wait, 15.0), answer=wait, silence=wait, window=wait)


def _trust(_: Address) -> tuple[ssl.SSLContext, str]:
    return _context(), ""


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def _reader(connection: Connection, answer: http.client.HTTPResponse) -> Callable[[int], bytes]:
    def read(most: int) -> bytes:
        buffer = bytearray(most)
        came = 0
        while came < most:
            with memoryview(buffer)[came:] as room:
                more = connection.read_into(answer, room)
            if not more:
                break
            came += more
        return bytes(buffer[:came])

    return read


def _visible(text: str) -> bool:
    return len(text) <= 256 and all("!" <= character <= "~" for character in text)


@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()
