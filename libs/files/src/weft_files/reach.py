"""Who may be asked for files: nobody in the own network, unless the operator named it."""

import ipaddress
import re
import socket
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from weft_contracts.engines.server_url import fault_of_address, unwrapped

from weft_files.faults import Cut, Refused

MOST_URL: Final = 8192
_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9])?")
_PORTS: Final = {"http": 80, "https": 443}
_LOOKUPS: Final = ThreadPoolExecutor(8, thread_name_prefix="lookup")
"""Threads that ask the resolver of the machine, which takes no bound itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server that was checked: connect to one of `addresses` and to nothing that the name comes to later."""

    scheme: str
    host: str
    port: int
    addresses: tuple[str, ...]
    target: str
    """Path and query, as a request names them."""


class Reach:
    """Public addresses over https, and what WEFT_SOURCES_ALLOW names as `host` or `host:port`, over http too.

    Link-local addresses and clouds' metadata services are never asked, whoever names them."""

    def __init__(self, allow: Collection[str] = ()) -> None:
        """Raises ValueError for an entry that is no `host` or `host:port`."""
        self._allow = frozenset(_entry(each) for each in allow)

    def names(self, host: str, port: int) -> bool:
        """Whether the operator's setting names this server."""
        host = _lowered(host)
        return (host, None) in self._allow or (host, port) in self._allow

    def place(self, url: str, timeout: float, *, registered: bool = False) -> Place:
        """Resolve once and check all that the name comes to. Raises Refused, and Cut where nothing was found.

        `registered`: it is a node of the mesh, which may lie in the own network.
        """
        parts, host, port = self._split(url, registered)
        lookup = _LOOKUPS.submit(socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM)
        try:
            found = lookup.result(timeout)
        except TimeoutError:
            lookup.cancel()
            raise Cut(f"can't be reached: {host} was not resolved within {timeout:g} s") from None
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise Cut(f"can't be reached: {host} has no address ({why})") from None
        addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))[:16]
        for address in addresses:
            self._check(host, port, address, registered)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Place(parts.scheme, host, port, addresses, target)

    def origin(self, url: str, *, registered: bool = False) -> tuple[str, str, int]:
        """Scheme, host and port. Raises Refused."""
        parts, host, port = self._split(url, registered)
        return parts.scheme, host, port

    def _split(self, url: str, registered: bool = False) -> tuple[SplitResult, str, int]:
        if len(url) > MOST_URL or not url.isascii() or not url.isprintable() or " " in url:
            raise Refused(f"want a URL of at most {MOST_URL} printable ASCII characters without spaces")
        try:
            parts = urlsplit(url)
            host, port = _lowered(parts.hostname or ""), parts.port
        except ValueError as error:
            raise Refused(f"is no URL: {error}") from None
        if parts.scheme not in _PORTS or not host:
            raise Refused("want an address that begins with https:// and a host")
        if parts.username is not None or parts.password is not None:
            raise Refused("holds a user or a password: want a secret by its name")
        port = _PORTS[parts.scheme] if port is None else port
        if port == 0:
            raise Refused("names port 0: want 1 to 65535")
        if parts.scheme == "http" and not registered and not self.names(host, port):
            raise Refused(f"is plain http: want https, or {_shown(host, port)} in WEFT_SOURCES_ALLOW")
        try:
            self._check(host, port, host, registered)
        except ValueError:
            if not _NAME.fullmatch(host):
                raise Refused(f"names the host {host!r}: want a name or an address") from None
        return parts, host, port

    def _check(self, host: str, port: int, address: str, registered: bool) -> None:
        """Raises ValueError for what is no address."""
        if fault := fault_of_address(address):
            raise Refused(f"is not asked: {fault}")
        plain = unwrapped(ipaddress.ip_address(address))
        if not plain.is_global and not registered and not self.names(host, port):
            where = f"{host} is at {address}, which" if host != address else address
            raise Refused(
                f"is not asked: {where} is no public address: name {_shown(host, port)} in WEFT_SOURCES_ALLOW"
            )


def _entry(text: str) -> tuple[str, int | None]:
    try:
        if "/" in text or "@" in text:
            raise ValueError
        try:  # an IPv6 address alone, with no brackets
            return _lowered(str(ipaddress.ip_address(text.strip("[]")))), None
        except ValueError:
            parts = urlsplit(f"//{text}")
        host, port = _lowered(parts.hostname or ""), parts.port
        if ":" not in host and not _NAME.fullmatch(host):
            raise ValueError
    except ValueError:
        raise ValueError(f"{text[:80]!r} names no server: want host or host:port") from None
    return host, port


def _lowered(host: str) -> str:
    host = host.lower().rstrip(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
