"""The real client of hubs, kept within bounds: it asks whom it may, writes nothing, and tells nobody what runs here.

Importing huggingface_hub's client costs a third of a second, so it is imported by the first question to a hub.
"""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import httpx2
from weft_files.faults import Cut, Refused

from weft_sources.settings import SourceSettings

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MOST_ANSWER: Final = 64 << 20
"""Bytes of one answer; a repository of 20,000 files takes about 6 MB."""
_READY = Lock()
_ready = False


@dataclass(frozen=True, slots=True)
class _Call:
    settings: SourceSettings
    until: float


_CALL: ContextVar[_Call | None] = ContextVar("_CALL", default=None)


class AnswerTooLarge(httpx2.TransportError):
    """More than a description of a repository takes."""


class NotAsked(httpx2.TransportError):
    """A server that may not be asked; the message is what follows its name."""


@contextmanager
def hub_api(settings: SourceSettings) -> "Generator[HfApi]":
    """huggingface_hub's client for this hub and token; what is asked in the context ends within `timeout_s`."""
    from huggingface_hub import HfApi

    _prepare()
    call = _Call(settings, time.monotonic() + settings.timeout_s)
    token = _CALL.set(call)
    try:
        yield HfApi(endpoint=settings.hub.rstrip("/"), token=settings.hub_token or False, library_name="weft")
    finally:
        _CALL.reset(token)


def _prepare() -> None:
    """Once in a process: no telemetry, which also writes into its home, and our transport in its session."""
    global _ready
    with _READY:
        if not _ready:
            from huggingface_hub import constants, set_client_factory

            constants.HF_HUB_DISABLE_TELEMETRY = True
            set_client_factory(_client)
            _ready = True


def _client() -> httpx2.Client:
    return httpx2.Client(transport=_Bounded(), follow_redirects=True, max_redirects=5, trust_env=False)


class _Bounded(httpx2.HTTPTransport):
    """Each request, those after a redirect too, is held against the reach and the time that the call has left."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        call = _CALL.get()
        if call is None:
            return super().handle_request(request)  # somebody else's in this process
        left = call.until - time.monotonic()
        if left <= 0:
            raise httpx2.ReadTimeout("out of time", request=request)
        try:
            call.settings.reach.place(str(request.url), left)
        except (Refused, Cut) as fault:
            raise NotAsked(str(fault), request=request) from None
        request.extensions["timeout"] = {"connect": left, "read": left, "write": left, "pool": left}
        request.headers["accept-encoding"] = "identity"  # what is packed may unpack to anything
        response = super().handle_request(request)
        response.stream = _BoundedStream(response, call.until)
        return response


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, response: httpx2.Response, until: float) -> None:
        self._packed = response.headers.get("content-encoding", "identity") != "identity"
        stream = response.stream
        assert isinstance(stream, httpx2.SyncByteStream)
        self._stream = stream
        self._until = until

    def __iter__(self) -> Iterator[bytes]:
        if self._packed:
            raise AnswerTooLarge("it is packed, and was asked not to be")
        came = 0
        for piece in self._stream:
            came += len(piece)
            if came > MOST_ANSWER:
                raise AnswerTooLarge(f"it is more than {MOST_ANSWER >> 20} MiB")
            if time.monotonic() > self._until:
                raise httpx2.ReadTimeout("out of time")
            yield piece

    def close(self) -> None:
        self._stream.close()
