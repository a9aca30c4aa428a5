"""The address by which a caller is counted, and whose word for it is believed."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
NO_ADDRESS = "local"
"""Of a caller over a unix socket."""
MAX_HOPS = 16
"""Of trusted proxies, one behind the other; further back nothing is looked at."""


def address_of(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """By what a caller is counted: its IPv4 address, or the /64 of its IPv6 address.

    `forwarded_for` are the `X-Forwarded-For` headers in their order. They are looked at only where the peer is a
    trusted proxy, from the last entry back to the first that is none; what is no address ends the search.
    """
    if peer is None:
        return NO_ADDRESS
    found = _address(peer)
    if found is None:
        return peer
    if trusted and _within(found, trusted):
        entries = ",".join(forwarded_for).rsplit(",", MAX_HOPS) if forwarded_for else []
        for entry in reversed(entries[-MAX_HOPS:]):
            hop = _address(entry.strip())
            if hop is None:
                break
            found = hop
            if not _within(found, trusted):
                break
    if isinstance(found, IPv4Address):
        return str(found)
    return f"{IPv6Address(int(found) >> 64 << 64)}/64"


def networks(text: str) -> tuple[Network, ...]:
    """CIDRs with commas between them; an address is a network of one. Raises ValueError with a sentence."""
    found: list[Network] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(ip_network(part))
        except ValueError:
            raise ValueError(f"{part!r} is no network; one looks like 10.0.0.0/8 or fd00::/8") from None
    return tuple(found)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address as proxies write it, with a port or without."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _within(address: IPv4Address | IPv6Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)
