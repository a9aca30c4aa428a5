"""One HTTP/1.1 connection to a place that was checked, with blocking sockets: for threads, not for an event loop."""

import contextlib
import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, cast

from weft_files.bounds import Bounds
from weft_files.faults import Cut, Refused, Stopped
from weft_files.reach import Place
from weft_files.wire import Wire

Reader: TypeAlias = "io.BufferedReader[Wire]"


class Sockets:
    """The open sockets of one transfer, which whoever cancels it shuts: reads in other threads end at once."""

    def __init__(self) -> None:
        self._open: set[socket.socket] = set()
        self._stop = threading.Event()
        self._counting = threading.Lock()
        self.moved = 0
        """Bytes of bodies that came over them."""

    def add(self, connection: socket.socket) -> None:
        """Raises Stopped, and closes it then."""
        self._open.add(connection)
        if self._stop.is_set():
            self.drop(connection)
            raise Stopped

    def count(self, bytes: int) -> None:
        """So many more came."""
        with self._counting:
            self.moved += bytes

    def check(self) -> None:
        """Raises Stopped."""
        if self._stop.is_set():
            raise Stopped

    def drop(self, connection: socket.socket) -> None:
        self._open.discard(connection)
        connection.close()

    def sleep(self, seconds: float) -> None:
        """Raises Stopped."""
        self._stop.wait(seconds)
        self.check()

    def stop(self) -> None:
        """From any thread."""
        self._stop.set()
        self.cut_short()

    def cut_short(self) -> None:
        """End what is read now. Sockets of TLS are shut below it, which doesn't wait for the other side."""
        for each in tuple(self._open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)


class _Parsed(Protocol):
    """What http.client asks of a socket that it reads an answer from."""

    def makefile(self, mode: str) -> Reader: ...


class _Buffered:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def makefile(self, mode: str) -> Reader:
        return cast(Reader, _Kept(self._reader))


class _Kept:
    """The connection's reader, which stays open when one answer is closed."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def close(self) -> None: ...

    def flush(self) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class Connection:
    """Asks one place, one request after another. `context` is for https."""

    def __init__(
        self, place: Place, url: str, bounds: Bounds, sockets: Sockets, context: ssl.SSLContext, name: str
    ) -> None:
        """`name`: whom the certificate must name; empty: the host. Raises Cut and Refused."""
        self.place = place
        self.url = url
        self._answer: http.client.HTTPResponse | None = None
        self._bounds = bounds
        self._sockets = sockets
        self._socket = self._connect(context, name or place.host)
        self._wire = Wire(self._socket, bounds, sockets.count)
        self._reader = io.BufferedReader(self._wire, 1 << 16)

    def _connect(self, context: ssl.SSLContext, name: str) -> socket.socket:
        fault: OSError | None = None
        until = time.monotonic() + self._bounds.connect
        for address in self.place.addresses:
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                opened = socket.create_connection((address, self.place.port), left)
                self._sockets.add(opened)
                if self.place.scheme == "http":
                    return opened
                try:
                    # The socket moves into the one of TLS; a cut inside a record must not read as an end.
                    sealed = context.wrap_socket(opened, server_hostname=name, suppress_ragged_eofs=False)
                except BaseException:
                    self._sockets.drop(opened)
                    raise
                self._sockets.drop(opened)
                self._sockets.add(sealed)
                return sealed
            except ssl.SSLCertVerificationError as error:
                raise Refused(f"shows a certificate that we don't trust: {error.verify_message}") from None
            except OSError as error:
                fault = error
        self._sockets.check()
        raise Cut(f"takes no connection: {fault or 'out of time'}")

    @property
    def idle(self) -> bool:
        """Whether the last answer was read to its end, and the server leaves the connection open."""
        return self._answer is not None and self._answer.isclosed() and not self._answer.will_close

    def ask(self, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """The head of the answer to a GET. Raises Cut and Refused."""
        request = _request(self.place, headers)
        self._answer = None
        try:
            self._socket.settimeout(self._bounds.silence)
            self._socket.sendall(request)
            self._wire.begin_head()
            answer = http.client.HTTPResponse(cast(socket.socket, cast(_Parsed, _Buffered(self._reader))), method="GET")
            answer.begin()
            self._answer = answer
        except http.client.RemoteDisconnected:
            raise Cut("closed the connection without an answer") from None
        except http.client.HTTPException as error:
            raise Refused(f"speaks no HTTP: {str(error)[:100] or type(error).__name__}") from None
        except OSError as error:
            raise Cut(f"broke off: {error}") from None
        return answer

    def read_into(self, answer: http.client.HTTPResponse, buffer: memoryview) -> int:
        """As much as there is room for; less only at the end. Raises Cut and Refused."""
        try:
            return answer.readinto(buffer)
        except http.client.IncompleteRead:
            raise Cut("broke off inside a chunk") from None
        except (http.client.HTTPException, ValueError) as error:
            raise Refused(f"sends a body that is no HTTP: {str(error)[:100]}") from None
        except OSError as error:
            self._sockets.check()
            raise Cut(f"broke off: {error}") from None

    def expect(self, most: int) -> None:
        """A body of at most so many bytes."""
        self._wire.begin_body(most)

    def close(self) -> None:
        self._sockets.drop(self._socket)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _request(place: Place, headers: Mapping[str, str]) -> bytes:
    host = f"[{place.host}]" if ":" in place.host else place.host
    port = "" if place.port == {"http": 80, "https": 443}[place.scheme] else f":{place.port}"
    lines = {"host": f"{host}{port}", "accept": "*/*", "accept-encoding": "identity", "user-agent": "weft"}
    lines |= {name.lower(): value for name, value in headers.items()}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    if any(not f"{name}{value}".isprintable() or "\n" in value or "\r" in value for name, value in lines.items()):
        raise Refused("would be asked with a header that holds control characters")
    return f"GET {place.target} HTTP/1.1\r\n{text}\r\n".encode("latin-1")
