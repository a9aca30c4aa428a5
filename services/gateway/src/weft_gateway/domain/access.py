"""Which requests are let in: by an API key, or without one where none is needed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from weft_contracts.api_key import MARK, hash_of
from weft_contracts.facts.values import Scope

from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.keys import KeyView
from weft_gateway.domain.refused import Refused

Policy = Literal["local", "keys", "anyone"]
"""Who needs no key. `local`: this machine, by its own name and no foreign page; `keys`: nobody; `anyone`: everybody."""
_OF_NODES = (
    *("register", "credential", "heartbeat", "models", "drain", "resume", "deregister", "secret"),
    *("files/near", "files/reader"),
)
NODE_ROUTES = frozenset({f"/api/node/{what}" for what in _OF_NODES})
"""The nodes' own routes: each checks a token or a signature itself."""
REGISTER = "/api/node/register"
MAX_NODES_BODY = 64 * 1024
"""Bytes of a body on the nodes' own routes: anybody who reaches the port may send one."""
OPEN_PATHS = frozenset({"/healthz", "/readyz"}) | NODE_ROUTES
"""The nodes' own, and probes."""
QUESTIONS = frozenset({"/api/plans"})
"""Asked by POST, since they have a body, and they change nothing."""
PROBES = frozenset({"/healthz", "/readyz", "/metrics", "/openapi.json", "/asyncapi.json"})
V1 = "/v1/"
"""Under it lie OpenAI's routes."""
PAGE = "/page/"
"""Under it lie the files of the first page, which is `/`."""
INSTALL = "/install/"
"""Under it lies, by digest, what a machine that has no Weft installs to join."""
MAX_SECRET = 256
"""Characters; no key is as long."""
_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"})
"""Headers that a proxy adds: then the peer is not the caller. They let nobody in."""


@dataclass(slots=True)
class AuthContext:
    """What a request tells of its caller. `peer` is the address at the socket's other end, None for a unix socket."""

    peer: str | None
    host: str | None = None
    origin: str | None = None
    authorization: str | None = None
    forwarded: bool = False
    origin_allowed: bool = False
    """Whether a setting lets pages of this origin call what is asked for."""
    doubled: str | None = None
    """A header that came twice and may not."""


def auth_context(headers: Iterable[tuple[bytes, bytes]], peer: str | None) -> AuthContext:
    """The context in a request's headers, whose names are in lower case."""
    found = AuthContext(peer)
    for name, value in headers:
        if name == b"host":
            found.doubled = "Host" if found.host is not None else found.doubled
            found.host = value.decode("latin-1")
        elif name == b"authorization":
            found.doubled = "Authorization" if found.authorization is not None else found.doubled
            found.authorization = value.decode("latin-1")
        elif name == b"origin":
            found.origin = value.decode("latin-1")
        elif name in _FORWARDED:
            found.forwarded = True
    return found


def required_scope(method: str, path: str) -> Scope:
    """The scope that a route needs. One that nobody thought of here needs `read` to look and `admin` for all else."""
    if path.startswith(V1):
        return "inference"
    looks = method in ("GET", "HEAD") or (method == "POST" and path in QUESTIONS)
    return "read" if looks else "admin"


def is_file(path: str) -> bool:
    """Whether this is the first page, a file of it, or one to install: for everybody who may reach the gateway. The
    page asks for a key by itself; whoever names a file to install by its digest was told of it."""
    return path == "/" or path.startswith((PAGE, INSTALL))


def authenticate(
    context: AuthContext, required: Scope, policy: Policy, keys: Mapping[str, KeyView], now: float
) -> Caller:
    """Let a caller in, or raise Refused: 400 for what is ambiguous, 401 without a good key, 403 for what may not be.

    `keys` are by their secrets' hashes; `now` is seconds since the epoch. A page of another origin may never call.
    Where no key is needed, a secret that is none of ours is passed over: clients insist on sending something.
    """
    check_doubled(context)
    check_origin(context)
    secret = _secret(context.authorization)
    if secret is not None and (policy == "keys" or secret.startswith(MARK)):
        return _by_key(secret, required, keys, now)
    if policy == "keys":
        raise unauthorized("A key is needed: send it as `Authorization: Bearer weft-…`.")
    if policy == "local":
        check_local(context)
    return NOBODY


def recheck(caller: Caller, keys: Mapping[str, KeyView], now: float) -> None:
    """Refuse a caller whose key has ended since they were authenticated. Raises Refused, 401."""
    if caller.key is not None:
        _check_live(keys.get(caller.key.hash), now)


def check_doubled(context: AuthContext) -> None:
    """Refuse a request with two of a header that decides who is let in. Raises Refused, 400."""
    if context.doubled is not None:
        raise Refused(400, f"The header {context.doubled} came more than once; send it once.", code="doubled_header")


def check_host(context: AuthContext, *, http10: bool) -> None:
    """Refuse a request of HTTP/1.1 without `Host` (RFC 9112, 3.2). Raises Refused, 400."""
    if context.host is None and not http10:
        raise Refused(400, "The header Host is missing; HTTP/1.1 demands it.", code="no_host")


def check_origin(context: AuthContext) -> None:
    """Refuse a page of another origin, unless a setting allows it. Raises Refused, 403."""
    origin, host = context.origin, context.host
    if origin is not None and not context.origin_allowed and not _same_origin(origin, host):
        raise Refused(403, f"A page of {origin[:200]} may not call this gateway.", code="foreign_origin")


def check_local(context: AuthContext) -> None:
    """Refuse a caller that is not this machine itself, by its own name. Raises Refused, 403."""
    if context.peer is not None and not is_loopback(context.peer):
        raise Refused(403, "Without a key only this machine itself may call this gateway.", code="not_loopback")
    if context.host is None or not is_loopback(_bare(context.host)):
        what = "Without a key this gateway answers only to localhost, 127.0.0.1 or [::1] as Host."
        raise Refused(403, what, code="foreign_host")
    if context.forwarded:
        what = "Without a key this gateway answers no proxy; set WEFT_REQUIRE_KEYS=1 behind one, and send a key."
        raise Refused(403, what, code="forwarded")


def check_fetch(site: str | None, mode: str | None) -> None:
    """Refuse what a page of another origin fetches without saying so, as for an image. Raises Refused, status 403.

    Both are what browsers tell (`Sec-Fetch-Site`, `Sec-Fetch-Mode`). A link to here may be followed.
    """
    if site in ("cross-site", "same-site") and mode != "navigate":
        raise Refused(403, "A page of another origin may not call this gateway.", code="foreign_origin")


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without port and brackets, is this machine's loopback."""
    return host in _NAMES or (host.startswith("127.") and host.isascii() and host.replace(".", "").isdigit())


def needs_log(path: str) -> bool:
    """Whether a route can only answer when the log is folded."""
    return path not in PROBES and not is_file(path)


def starting(why: str = "it still reads the event log") -> Refused:
    """The refusal while the log is still being folded, so that nothing is known yet."""
    return Refused(503, f"The gateway is starting: {why}.", code="starting", headers={"retry-after": "1"})


def unauthorized(sentence: str) -> Refused:
    """The refusal of a request without a good key. It never repeats what was sent."""
    return Refused(401, sentence, code="invalid_api_key", headers={"www-authenticate": 'Bearer realm="weft"'})


def _by_key(secret: str, required: Scope, keys: Mapping[str, KeyView], now: float) -> Caller:
    # Looked up by its hash: how long that takes tells of the hash at most, from which no secret follows.
    view = keys.get(hash_of(secret)) if len(secret) <= MAX_SECRET else None
    live = _check_live(view, now)
    if not live.may(required):
        what = f"This key's scopes are {', '.join(live.scopes)}; {required} is needed here."
        raise Refused(403, what, code="scope_missing")
    return Caller(live)


def _check_live(view: KeyView | None, now: float) -> KeyView:
    match view.state(now) if view is not None else None:
        case "live":
            assert view is not None
            return view
        case "revoked":
            raise unauthorized("This key was revoked; ask an admin for another.")
        case "expired":
            raise unauthorized("This key has expired; ask an admin for another.")
        case None:
            raise unauthorized("This key is not known here; ask an admin for one.")


def _secret(authorization: str | None) -> str | None:
    """What follows `Bearer`; None where there is nothing, or another scheme."""
    scheme, _, rest = (authorization or "").partition(" ")
    return (rest.strip() or None) if scheme.lower() == "bearer" else None


def _bare(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _same_origin(origin: str, host: str | None) -> bool:
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and host is not None and rest.lower() == host.lower()
