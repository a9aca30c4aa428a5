"""Where one blob may be asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

Redirects = Literal["none", "hub"]


def _no_headers() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Address:
    """`url` may be signed and `headers` may hold a secret: neither is shown to anybody. `headers` are read anew at each
    request, so they may be such as change with time."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=_no_headers, repr=False)
    redirects: Redirects = "none"
    """`hub`: followed as a hub's own are, a few, each to where Reach lets it."""
    node: str = ""
    """The name that the certificate of a registered node must show. Such an address may lie in a private network, and
    be plain http where the mesh speaks no TLS: whoever makes one has it from the log."""
    said: str = ""
    """What people call it, without secrets or queries; empty: scheme, host and path of the URL."""

    def __post_init__(self) -> None:
        if not self.said:
            object.__setattr__(self, "said", plain(self.url))


def plain(url: str) -> str:
    """The URL without user, password, query and fragment, at most 200 characters."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        at = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "what is no URL"
    return f"{parts.scheme}://{at}{port}{parts.path}"[:200]
