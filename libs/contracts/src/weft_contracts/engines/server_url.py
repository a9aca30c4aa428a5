"""Where an engine that is a server elsewhere may be: its URL, and the addresses that nobody is asked at."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

MOST_CHARACTERS: Final = 2048
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_METADATA: Final[Mapping[_Address, str]] = {
    ipaddress.ip_address(address): "a cloud's metadata service"
    for address in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
}
"""Those of clouds that lie outside the link-local range."""
_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses as a network without IPv4 writes them."""


def fault_of_url(url: str) -> str | None:
    """What is wrong with a server's URL, as what follows its name; None where nothing is."""
    if len(url) > MOST_CHARACTERS or not url.isascii() or not url.isprintable() or " " in url:
        return f"want a URL of at most {MOST_CHARACTERS} printable ASCII characters without spaces"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return f"is no URL: {error}"
    if parts.scheme not in ("http", "https") or not host:
        return "want http://HOST[:PORT]/PATH or https://…, up to and with /v1 where the server has that"
    if parts.username is not None or parts.password is not None:
        return "holds a user or a password, which would stand in the log: name a secret as `key`"
    if parts.query or parts.fragment or "?" in url or "#" in url:
        return "holds a query or a fragment: want what paths like /chat/completions are appended to"
    if port == 0:
        return "names port 0: want 1 to 65535"
    return fault_of_host(host)


def fault_of_host(host: str) -> str | None:
    """Why no server is asked that is called so, by a name or an address; None where one may be."""
    try:
        return fault_of_address(host)
    except ValueError:
        return None if _HOST.fullmatch(host) else f"names the host {host!r}: want a name or an address"


def fault_of_address(address: str) -> str | None:
    """Why nothing at this address is asked; None where it may be. Raises ValueError for what is no address."""
    found = ipaddress.ip_address(address)
    plain = unwrapped(found)
    if plain in _METADATA:
        return f"{address} is {_METADATA[plain]}, which is never asked"
    if plain.is_link_local or getattr(found, "scope_id", None):
        return f"{address} is a link-local address, which is never asked"
    if plain.is_unspecified or plain.is_multicast or plain == ipaddress.IPv4Address("255.255.255.255"):
        return f"{address} is no single machine's address"
    return None


def unwrapped(address: _Address) -> _Address:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    for inner in (address.ipv4_mapped, address.sixtofour):
        if inner is not None:
            return inner
    low = int(address) & 0xFFFFFFFF
    if address in _TRANSLATED or (int(address) >> 32 == 0 and low > 1):
        return ipaddress.IPv4Address(low)
    return address
