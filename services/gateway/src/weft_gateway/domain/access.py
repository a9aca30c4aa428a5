"""Who may speak to a gateway that has no keys: this machine, by its own name, from no foreign page."""

from collections.abc import Iterable

from weft_gateway.domain.refused import Refused

NODES_OWN = frozenset({f"/api/node/{what}" for what in ("register", "credential", "drain", "resume", "deregister")})
"""What a node's machine asks for itself: these routes check a token or a signature themselves."""
OPEN_PATHS = frozenset({"/healthz", "/readyz"}) | NODES_OWN
"""The nodes' own, and probes."""
PROBES = frozenset({"/healthz", "/readyz", "/metrics", "/openapi.json", "/asyncapi.json"})
PAGE = "/page/"
"""Under it lie the files of the first page, which is `/`."""
_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without port and brackets, is this machine's loopback."""
    return host in _NAMES or (host.startswith("127.") and host.replace(".", "").isdigit())


def check_access(peer: str | None, host: str | None, origin: str | None, *, anonymous: bool) -> None:
    """Refuse who may not be here. Raises Refused with status 403.

    `peer` is the address at the socket's other end, None for a unix socket. With `anonymous` set anyone may
    come, but still from no page of another origin.
    """
    if origin is not None and not _same_origin(origin, host):
        raise Refused(403, f"A page of {origin[:200]} may not call this gateway.", code="foreign_origin")
    if anonymous:
        return
    if peer is not None and not is_loopback(peer):
        raise Refused(403, "Without keys only this machine itself may call this gateway.", code="not_loopback")
    if host is None or not is_loopback(_bare(host)):
        raise Refused(
            403, "Without keys this gateway answers only to localhost, 127.0.0.1 or [::1] as Host.", code="foreign_host"
        )


def check_fetch(site: str | None, mode: str | None) -> None:
    """Refuse what a page of another origin fetches without saying so, as for an image. Raises Refused, status 403.

    Both are what browsers tell (`Sec-Fetch-Site`, `Sec-Fetch-Mode`). A link to here may be followed.
    """
    if site in ("cross-site", "same-site") and mode != "navigate":
        raise Refused(403, "A page of another origin may not call this gateway.", code="foreign_origin")


def needs_log(path: str) -> bool:
    """Whether a route can only answer when the log is folded."""
    return path not in PROBES and path != "/" and not path.startswith(PAGE)


def starting() -> Refused:
    """Nothing is known yet: the log is being folded."""
    return Refused(
        503, "The gateway is starting: it still reads the event log.", code="starting", headers={"retry-after": "1"}
    )


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The first header of a name given in lower case."""
    for key, value in headers:
        if key == name:
            return value.decode("latin-1")
    return None


def _bare(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _same_origin(origin: str, host: str | None) -> bool:
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and host is not None and rest.lower() == host.lower()
