"""CORS (the Fetch standard): which pages of other origins may call, and the headers that tell their browsers so."""

import re
from dataclasses import dataclass

Headers = list[tuple[bytes, bytes]]
ANY = "*"
MAX_AGE_S = 600
"""How long a browser need not ask again."""
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s,/?#@*]+")
_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}")
"""Of headers, as a browser lists them."""
_NODES = "/api/node/"
_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_VARY = (b"vary", b"origin")


@dataclass(frozen=True, slots=True)
class Cors:
    """Allowed origins. Cookies and the like are never request_headers for: a page sends its key as `Authorization`."""

    origins: frozenset[str]
    everywhere: bool = False
    """Not on `/v1` alone."""

    def covers(self, path: str) -> bool:
        """Whether pages of other origins may call this path at all; the nodes' routes they never may."""
        return path.startswith("/v1/") or (self.everywhere and not path.startswith(_NODES))

    def allows(self, path: str, origin: str | None) -> bool:
        """Whether a page of this origin may."""
        return origin is not None and self.covers(path) and (origin in self.origins or ANY in self.origins)

    def headers(self, path: str, origin: str | None) -> Headers:
        """Headers of an answer, whatever its status: a page must be able to read what was wrong."""
        if not self.covers(path):
            return []
        if origin is None or not self.allows(path, origin):
            return [_VARY]
        allowed = origin.encode("latin-1")
        return [_VARY, (b"access-control-allow-origin", allowed), (b"access-control-expose-headers", b"*")]

    def preflight(self, path: str, origin: str | None, request_headers: Headers) -> Headers | None:
        """What a browser hears that asks before its page calls; None: it does not ask, or its page may not.

        `request_headers` are the headers of an OPTIONS, whose names are in lower case.
        """
        wanted = dict(request_headers)
        if b"access-control-request-method" not in wanted or not self.allows(path, origin):
            return None
        answer = [
            *self.headers(path, origin),
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-max-age", b"%d" % MAX_AGE_S),
        ]
        names = wanted.get(b"access-control-request-headers", b"")
        if _NAMES.fullmatch(names):
            answer.append((b"access-control-allow-headers", names))
        return answer


def origins(text: str) -> frozenset[str]:
    """Origins with commas between them, or `*`. Raises ValueError with a sentence."""
    found: set[str] = set()
    for part in filter(None, (part.strip().lower() for part in text.split(","))):
        if part != ANY and not _ORIGIN.fullmatch(part):
            raise ValueError(f"{part!r} is no origin; one looks like https://app.example or http://localhost:3000")
        found.add(part)
    return frozenset(found)
