"""uvicorn's HTTP protocol with a short way for the hot routes: no ASGI message, no task, no queue per token."""

import asyncio
import re
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from weft_gateway.domain.access import V1
from weft_gateway.domain.cors import Cors
from weft_gateway.domain.problems import PROBLEM, openai_error, phrase, problem
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_headers import header
from weft_gateway.inbound.http.error_metrics import route_label
from weft_gateway.inbound.http.exchange import Exchange, Handler

HOT_ROUTES = {
    b"/v1/chat/completions": "chat",
    b"/v1/completions": "completion",
    b"/v1/responses": "response",
    b"/v1/embeddings": "embedding",
    b"/v1/rerank": "rerank",
    b"/v1/tokenize": "tokenize",
    b"/v1/detokenize": "detokenize",
    b"/tokenize": "tokenize",
    b"/detokenize": "detokenize",
}
MAX_HEAD_BYTES = 64 * 1024
"""Of a request line and headers, and as much again as comes in one piece."""
_OFFERS = frozenset({b"connection", b"upgrade", b"http2-settings"})
HEAD_WAIT_S = 30.0
"""How long they may take to come, from the connection's or their first byte on; and for more of a body that is answered
already."""


class HotPathProtocol(HttpToolsProtocol):
    """One connection. `handler` is set by `hot_path_protocol`."""

    handler: ClassVar[Handler]
    cors: ClassVar[Cors | None]
    url = b""
    _target = b""
    """The target as it was sent, of a head that offers to upgrade."""
    _active: Exchange | None = None
    _head_since = 0.0
    """When the head that is awaited began, or what came last of a body that is answered already; 0: neither."""
    _body_comes = False
    """A head was whole, its body isn't."""
    _steps = 0
    """Heads that have begun, and parts of bodies."""
    _frame_bytes = 0
    """What came since the last one and is neither: of a head, of what stands around chunks, of trailers."""
    _offered = False
    """The head offers to upgrade: the parser reads no body behind it."""
    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_since = self.loop.time()
        self._look_at_head()

    def data_received(self, data: bytes) -> None:
        before = self._steps
        self._unset_keepalive_if_required()
        self._feed(data)
        if not self._head_since and not self._answering:
            self._head_since = self.loop.time()  # the keep-alive ended with what came, be it an empty line
        if self._steps == before and (self._head_since or self._body_comes):
            self._frame_bytes += len(data)
            if self._frame_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                what = f"The head of the request is larger than {MAX_HEAD_BYTES} bytes; send fewer headers."
                if self._body_comes:
                    what = f"Behind the body are more than {MAX_HEAD_BYTES} bytes of trailers; send none."
                self._refuse(Refused(431, what, code="head_too_large"))

    def _feed(self, data: bytes) -> None:
        left: list[bytes | memoryview] = [data]
        while left:
            piece = left.pop()
            parser: Any = self.parser
            try:
                parser.feed_data(piece)
            except httptools.HttpParserUpgrade as offer:
                if parser.get_method() == b"CONNECT":
                    self.send_400_response("")
                    return
                left += [memoryview(piece)[offer.args[0] :], self._without_offer()]
                self.parser = httptools.HttpRequestParser(self)  # the other may be closed for what follows
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            except httptools.HttpParserError:
                self.send_400_response("")
                return

    def _without_offer(self) -> bytes:
        """An offer (h2c, WebSocket) is declined by going on in HTTP/1.1: the head once more, as if it made none."""
        self._offered = False
        kept = [header for header in self.headers if header[0] not in _OFFERS]
        words = b",".join(value for name, value in self.headers if name == b"connection").lower().split(b",")
        if b"close" in (word.strip() for word in words):
            kept.append((b"connection", b"close"))
        parser: Any = self.parser
        first = b"%b %b HTTP/%b" % (parser.get_method(), self._target, parser.get_http_version().encode())
        return b"\r\n".join([first, *(b"%b: %b" % header for header in kept), b"", b""])

    def send_400_response(self, msg: str) -> None:
        """uvicorn's word for what its parser does not take."""
        self._refuse(Refused(400, "This is not HTTP/1.1 that can be read.", code="malformed_http"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_since = self.loop.time()
        self._steps += 1
        self._frame_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._body_comes:
            return  # what comes behind a body says nothing
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head_since = 0.0
        parser: Any = self.parser
        if parser.should_upgrade():
            self._offered, self._target = True, self.url
            return
        self._body_comes = True
        if self.url[:1] != b"/":
            self._take_host_from_target(http10=parser.get_http_version() == "1.0")
        route = HOT_ROUTES.get(self.url) or (b"?" in self.url and HOT_ROUTES.get(self.url.partition(b"?")[0]))
        if not route or parser.get_method() != b"POST":
            super().on_headers_complete()
            return
        http10 = parser.get_http_version() == "1.0"
        default_headers = self.server_state.default_headers
        if self.cors is not None:
            default_headers = [*default_headers, *self.cors.headers(V1, header(self.headers, b"origin"))]
        before: Any = self.cycle
        exchange = Exchange(
            self.handler,
            route,
            self.headers,
            self.client[0] if self.client else None,
            self.transport,
            self.flow,
            keep_alive=not http10 and parser.should_keep_alive(),
            http10=http10,
            expect_continue=self.expect_100_continue,
            default_headers=default_headers,
            on_response=self.on_response_complete,
        )
        self.cycle = exchange  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
        if before is None or before.response_complete:
            self._active = exchange
            exchange.start()
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))  # type: ignore[arg-type]  # pyright: ignore

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if isinstance(cycle, Exchange):
            self._active = cycle
            # Later, not now: a thousand pipelined requests must not nest a thousand calls.
            self.loop.call_soon(cycle.start)
        else:
            super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        self._head_since = 0.0
        self._steps += 1
        self._frame_bytes = 0
        cycle: Any = self.cycle
        if isinstance(cycle, Exchange):
            cycle.feed(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._offered:
            return
        self._body_comes = False
        cycle: Any = self.cycle
        if isinstance(cycle, Exchange):
            cycle.complete()
        else:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._active is not None:
            self._active.lost()
            self._active = None
        super().connection_lost(exc)
        # a circle otherwise, which a gateway's collector looks for seldom
        self.cycle = None  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]

    def _take_host_from_target(self, *, http10: bool) -> None:
        """A target in absolute form names the host itself; `Host` then says nothing (RFC 9112, 3.2.2)."""
        scheme, mark, rest = self.url.partition(b"://")
        if mark and scheme.lower() in (b"http", b"https"):
            named = re.split(rb"[/?#]", rest, maxsplit=1)[0]
            path = rest[len(named) :]
            self.url = path if path[:1] == b"/" else b"/" + path
            named = named.rpartition(b"@")[2]
            hosts = [name for name, _ in self.headers if name == b"host"]
            self.headers[:] = [(name, named if name == b"host" else value) for name, value in self.headers]
            if not hosts and http10:
                self.headers.append((b"host", named))

    def _look_at_head(self) -> None:
        """Now and then: a head that doesn't come, while nothing else does, ends the connection."""
        if self._head_since and not self._answering and self.loop.time() - self._head_since > HEAD_WAIT_S:
            self._refuse(Refused(408, f"The request did not come within {HEAD_WAIT_S:g} s.", code="head_late"))
        else:
            self._watch = self.loop.call_later(HEAD_WAIT_S / 2, self._look_at_head)

    @property
    def _answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _refuse(self, refused: Refused) -> None:
        """Answer what is no request, and close."""
        openai = self.url.startswith(b"/v1/")
        body = openai_error(refused) if openai else problem(refused)
        lines = [
            f"HTTP/1.1 {refused.status} {phrase(refused.status)}".encode(),
            *(b"%b: %b" % header for header in self.server_state.default_headers),
            b"content-type: " + (b"application/json" if openai else PROBLEM.encode()),
            b"content-length: %d" % len(body),
            b"connection: close",
        ]
        if not self._answer_due():
            self.handler.refused(refused.status, route_label(self.url.decode("latin-1")))
            self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()

    def _answer_due(self) -> bool:
        """Whether an answer stands half on the wire, or is awaited: another would be read as its part, or for it."""
        cycle: Any = self.cycle
        if cycle is None:
            return False
        if self.pipeline or not (cycle.more_body or cycle.response_complete):
            return True
        return self._body_comes and not isinstance(cycle, Exchange) and cycle.response_started


def hot_path_protocol(handler: Handler, cors: Cors | None = None) -> type[asyncio.Protocol]:
    """The protocol class to give to uvicorn as `http`. `cors`: see Authenticator."""
    return type("HotPathProtocol", (HotPathProtocol,), {"handler": handler, "cors": cors})
