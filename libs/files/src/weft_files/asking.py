"""Asks one address for ranges of its file, over its redirects and on a connection that is kept."""

import ssl
from collections.abc import Callable, Mapping
from http.client import HTTPResponse
from typing import Final
from urllib.parse import urljoin

from weft_files.address import Address
from weft_files.bounds import Bounds
from weft_files.connection import Connection, Sockets
from weft_files.faults import Cut, Refused
from weft_files.reach import Place, Reach

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_DENIED: Final = (401, 403)

Trust = Callable[[Address], tuple[ssl.SSLContext, str]]
"""The context for https, and whom the certificate must name (empty: the host)."""


class Route:
    """Where an address's redirects end, shared by the readers of one file."""

    def __init__(self) -> None:
        self.landed: str | None = None
        self.etags: tuple[str, ...] = ()


class Asking:
    """One reader's."""

    def __init__(
        self, address: Address, route: Route, reach: Reach, bounds: Bounds, sockets: Sockets, trust: Trust
    ) -> None:
        self._address = address
        self._route = route
        self._reach = reach
        self._bounds = bounds
        self._sockets = sockets
        self._trust = trust
        self.connection: Connection | None = None

    def get(self, headers: Mapping[str, str]) -> HTTPResponse:
        """The answer to a GET at the end of the redirects. Raises Cut, Refused and Stopped."""
        landed = self._route.landed
        if landed is not None:
            answer = self._hop(landed, headers)
            if answer.status not in _DENIED and answer.status not in _REDIRECTS:
                return answer
            self._route.landed = None  # a signed URL that has run out
            self.close()
        return self._follow(headers)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _follow(self, headers: Mapping[str, str]) -> HTTPResponse:
        url, etags = self._address.url, ()
        for hops in range(self._bounds.redirects + 1):
            answer = self._hop(url, headers)
            if answer.status not in _REDIRECTS or self._address.redirects != "hub":
                if hops and answer.status in _DENIED:  # what was signed a moment ago may have run out since
                    raise Cut(f"answers {answer.status} where its redirects end")
                if hops:
                    self._route.landed, self._route.etags = url, etags
                return answer
            etags = (*etags, *(answer.getheader(name) or "" for name in ("etag", "x-linked-etag")))
            there = answer.getheader("location") or ""
            self.close()  # its body is of no use
            if not there:
                raise Refused("sends a redirect to nowhere")
            try:
                url = urljoin(url, there)
            except ValueError as error:
                raise Refused(f"sends a redirect to what is no URL: {error}") from None
        raise Refused(f"sends more than {self._bounds.redirects} redirects")

    def _hop(self, url: str, headers: Mapping[str, str]) -> HTTPResponse:
        kept = self.connection
        if kept is not None and kept.idle and kept.url == url:
            try:
                return kept.ask({**headers, **self._own_headers(kept.place)})
            except Cut:
                self._sockets.check()  # else it was closed while nobody used it
        self.close()
        self._sockets.check()
        place = self._reach.place(url, self._bounds.connect, registered=self._address.node != "")
        context, name = self._trust(self._address)
        self.connection = Connection(place, url, self._bounds, self._sockets, context, name)
        return self.connection.ask({**headers, **self._own_headers(place)})

    def _own_headers(self, place: Place) -> dict[str, str]:
        """They may hold a secret, so they go to the address's own server and to no other."""
        home = self._reach.origin(self._address.url, registered=self._address.node != "")
        return dict(self._address.headers) if (place.scheme, place.host, place.port) == home else {}
