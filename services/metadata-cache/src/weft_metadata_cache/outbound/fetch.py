"""Fetches one registered file from one node, whole and verified, or not at all. Nothing touches a disk."""

import asyncio
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from blake3 import blake3
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential
from weft_contracts.certificates import node_role, server_name

from weft_metadata_cache.domain.due_fetches import Fetch

if TYPE_CHECKING:
    import httpx


class NotServed(Exception):
    """The node does not serve what it registered; the text says what came instead."""


class Unreachable(Exception):
    """No whole answer came; another try may help."""


class Fetcher:
    """Asks nodes' file servers. One `whole` fetch takes at most `timeout` seconds a try, `tries` tries."""

    def __init__(
        self,
        *,
        timeout: float = 60.0,
        tries: int = 3,
        pause: float = 0.5,
        context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`context`: for TLS, where a node must show its certificate; None: plain."""
        self._context = context
        self._trusted: ssl.SSLContext | None = None
        self._timeout = timeout
        self._tries = tries
        self._pause = pause
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> "Fetcher":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def whole(self, fetch: Fetch) -> bytes:
        """The file's bytes, of the registered size and checksum. Raises NotServed, or Unreachable at the end."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Unreachable),
            stop=stop_after_attempt(self._tries),
            wait=wait_random_exponential(multiplier=self._pause, max=5),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                return await self._once(fetch)
        raise AssertionError("unreachable")

    async def _once(self, fetch: Fetch) -> bytes:
        import httpx  # 60 ms and 8 MB that a mesh without metadata files does without

        context = self._context() if self._context is not None else None
        if self._client is not None and context is not self._trusted:  # the certificate was renewed
            await self._client.aclose()
            self._client = None
        if self._client is None:
            self._trusted = context
            self._client = httpx.AsyncClient(
                follow_redirects=False,
                trust_env=False,  # a proxy's address is not the node's
                timeout=httpx.Timeout(10.0),
                verify=True if context is None else context,
                headers={"accept-encoding": "identity"},
            )
        named = {"sni_hostname": server_name(node_role(fetch.node))} if context is not None else None
        path = f"/metadata/{fetch.replica}/{fetch.file.name}"
        try:
            url = httpx.URL(scheme="http" if context is None else "https", host=fetch.host, port=fetch.port, path=path)
            async with asyncio.timeout(self._timeout), self._client.stream("GET", url, extensions=named) as answer:
                return await _verified(answer, fetch)
        except TimeoutError:
            raise Unreachable(f"{fetch.file.name} did not come within {self._timeout:.0f} s") from None
        except httpx.InvalidURL:
            raise NotServed(f"the node's address {fetch.host!r} is not one: it registers an IP or a name") from None
        except (httpx.HTTPError, OSError, ValueError) as error:  # ValueError: a host that no resolver takes
            raise Unreachable(f"{fetch.file.name} did not come: {error!r}") from error


async def _verified(answer: "httpx.Response", fetch: Fetch) -> bytes:
    file = fetch.file
    if answer.is_redirect:
        raise NotServed(f"the node sent a redirect for {file.name}, and files come from the node itself")
    if answer.status_code >= 500:
        raise Unreachable(f"the node answered {answer.status_code} for {file.name}")
    if answer.status_code != 200:
        raise NotServed(f"the node answered {answer.status_code} for {file.name}")
    announced = answer.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > file.size:
        raise NotServed(f"{file.name} exceeds cap: {announced} bytes come, {file.size} are registered")
    body, digest = bytearray(), blake3()
    async for chunk in answer.aiter_raw():
        if len(body) + len(chunk) > file.size:
            raise NotServed(f"{file.name} exceeds cap: more than the registered {file.size} bytes come")
        body += chunk
        digest.update(chunk)
    if len(body) < file.size:
        raise NotServed(f"{file.name} is short: {len(body)} bytes came, {file.size} are registered")
    if digest.hexdigest() != file.blake3:
        raise NotServed(f"checksum mismatch: {file.name} has {digest.hexdigest()}, {file.blake3} is registered")
    return bytes(body)
