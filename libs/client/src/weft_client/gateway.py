"""The gateway as the command line sees it: JSON over HTTP, one sentence for every error.

On the standard library alone: `weft status` should not wait for an HTTP library to load, and the environment's
proxies have no say about a mesh.
"""

import http.client
import json
import ssl
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from weft_contracts import certificates

from weft_client.failure import Exit, Failure

_TIMEOUT_S = 60.0
_PAGE = 1000
"""The most items that a page holds."""


class Refused(Failure):
    """The gateway answered with an error: `status` is HTTP's, `param` the field at fault where it names one."""

    def __init__(self, status: int, sentence: str, param: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.param = param


class Unreachable(Failure):
    """No gateway answers there."""


class Gateway:
    """A mesh's front door. Every call raises Refused or Unreachable, each with a sentence."""

    def __init__(
        self, url: str, *, key: str | None = None, timeout_s: float = _TIMEOUT_S, authority: Path | None = None
    ) -> None:
        """`authority`: the file of the mesh's own, which then is demanded; None: those that this machine trusts."""
        parts = _parts(url)
        self._host, self._port = parts.hostname or "", parts.port
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._tls = parts.scheme == "https"
        self.key = key
        self._timeout_s = timeout_s
        self.authority = authority

    def get(self, path: str, **query: str | int) -> Any:
        """The JSON body of a GET."""
        with self._asked("GET", _with(path, query)) as answer:
            return _json(answer)

    def every(self, path: str) -> list[dict[str, Any]]:
        """Every item of a list that comes in pages."""
        found: list[dict[str, Any]] = []
        after: dict[str, str | int] = {}
        while True:
            page = self.get(path, limit=_PAGE, **after)
            found += page["items"]
            if page["next"] is None:
                return found
            after = {"after": str(page["next"])}

    def text(self, path: str, **query: str | int) -> str:
        """The body of a GET as text."""
        with self._asked("GET", _with(path, query)) as answer:
            return answer.read().decode(errors="replace")

    def post(self, path: str, body: object, *, idempotency_key: str | None = None) -> Any:
        """The JSON body of a POST's answer."""
        more = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        with self._asked("POST", path, body, more) as answer:
            return _json(answer)

    def put(self, path: str, body: object) -> Any:
        """The JSON body of a PUT's answer."""
        with self._asked("PUT", path, body) as answer:
            return _json(answer)

    def send(
        self, path: str, pieces: Iterator[bytes], headers: Mapping[str, str], *, timeout_s: float
    ) -> tuple[int, Any]:
        """A PUT of bytes, whose length is in the headers; its status, 200 or 308, and the JSON body of its answer."""
        with self._asked("PUT", path, None, headers, timeout_s, pieces) as answer:
            return answer.status, _json(answer)

    @property
    def near(self) -> bool:
        """Whether it is asked at this machine's own loopback."""
        with suppress(ValueError):
            return ip_address(self._host).is_loopback
        return self._host == "localhost"

    def patch(self, path: str, body: object) -> Any:
        """The JSON body of a PATCH's answer."""
        with self._asked("PATCH", path, body) as answer:
            return _json(answer)

    def delete(self, path: str, **query: str | int) -> Any:
        """The JSON body of a DELETE's answer; None where it has none."""
        with self._asked("DELETE", _with(path, query)) as answer:
            return _json(answer)

    def stream(
        self, method: str, path: str, body: object = None, *, timeout_s: float | None = None, **query: str | int
    ) -> Generator[tuple[str, str]]:
        """Server-sent events as (event, data), until the server ends the stream.

        `timeout_s` bounds the silence between two lines; None: the client's own bound.
        """
        accept = {"Accept": "text/event-stream"}
        with self._asked(method, _with(path, query), body, accept, timeout_s) as answer:
            yield from _server_sent(answer)

    def _secure(self, timeout: float) -> http.client.HTTPSConnection:
        made = http.client.HTTPSConnection if self.authority is None else _MeshConnection
        try:
            context = ssl.create_default_context(cafile=self.authority)
        except OSError as e:
            raise Unreachable(f"the mesh's certificate {self.authority} can't be read: {e.strerror or e}") from e
        return made(self._host, self._port, timeout=timeout, context=context)

    @contextmanager
    def _asked(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        pieces: Iterator[bytes] | None = None,
    ) -> Generator[http.client.HTTPResponse]:
        timeout = timeout_s or self._timeout_s
        connection: http.client.HTTPConnection
        if self._tls:
            connection = self._secure(timeout)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        content = pieces if body is None else _content(body)
        kind = {"Content-Type": "application/json"} if body is not None else {}
        sent = {"Accept": "application/json", **kind, **(headers or {})}
        sent |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            try:
                if answer.status >= 400:
                    raise _refused(answer.status, answer.read(1 << 20))
                yield answer
            finally:
                answer.close()  # it has taken the socket over: a server must see at once that nobody reads on
        except ssl.SSLCertVerificationError as e:
            raise Unreachable(f"{self.url} shows a certificate that is not trusted here ({e.verify_message})") from e
        except ssl.SSLError as e:
            raise Unreachable(f"{self.url} does not speak TLS as it should ({e.reason or e}); is it http://?") from e
        except TimeoutError as e:
            raise Unreachable(f"{self.url} did not answer within {timeout:g} s") from e
        except (http.client.HTTPException, ConnectionResetError, BrokenPipeError) as e:
            raise Unreachable(f"{self.url} broke the connection off ({type(e).__name__})") from e
        except OSError as e:
            reason = e.strerror or str(e)
            raise Unreachable(f"nothing answers at {self.url} ({reason}); is the mesh up? (weft up)") from e
        finally:
            connection.close()


class _MeshConnection(http.client.HTTPSConnection):
    """To a gateway that must show the mesh's certificate for gateways, wherever it is reached."""

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = getattr(self, "_context")  # noqa: B009 - the base class's, which ships no types
        self.sock = context.wrap_socket(self.sock, server_hostname=certificates.server_name(certificates.GATEWAY))


def _parts(url: str) -> SplitResult:
    """The parts of a gateway's address. Raises Failure for what isn't one."""
    with suppress(ValueError):  # a port that is no number, or out of range
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    raise Failure(f"{url!r} is no address of a gateway; one looks like http://127.0.0.1:8080", Exit.USAGE)


def _content(body: object) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        raise Failure("what was typed is no UTF-8 text, and nothing else can be sent", Exit.USAGE) from e


def segment(text: str) -> str:
    """A name or id as one segment of a path."""
    return quote(text, safe="", errors="replace")


def _with(path: str, query: Mapping[str, str | int]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _json(answer: http.client.HTTPResponse) -> Any:
    body = answer.read()
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError as e:
        raise Refused(answer.status, f"the answer of {answer.url or 'the gateway'} is not JSON") from e


def _refused(status: int, body: bytes) -> Refused:
    """With the reason that an error body gives: a problem's detail, or OpenAI's message."""
    try:
        parsed: object = json.loads(body)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        found = cast("dict[str, Any]", parsed)
        error = found.get("error")
        if isinstance(error, dict):
            found = cast("dict[str, Any]", error)
        param = found.get("param")
        for name in ("detail", "message", "title"):
            if isinstance(text := found.get(name), str) and text:
                return Refused(status, text, param if isinstance(param, str) else None)
    text = body.decode(errors="replace").strip()
    return Refused(status, text[:500] or f"the gateway answered with status {status} and no reason")


def _server_sent(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str]]:
    event, data = "message", list[str]()
    while line := answer.readline():
        text = line.decode(errors="replace").rstrip("\r\n")
        if not text:
            if data:
                yield event, "\n".join(data)
            event, data = "message", []
        elif text.startswith("data:"):
            data.append(text[5:].removeprefix(" "))
        elif text.startswith("event:"):
            event = text[6:].strip()
