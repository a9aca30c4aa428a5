"""`GET /`: the first page for people, an index for programs; and the page's files."""

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import Response

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_headers import matches_entity_tag, takes_gzip, wants_html

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "cache-control": "no-cache",  # kept, and asked for again each time: the tag makes that cheap
    "content-security-policy": _POLICY,
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
_OF_DOCUMENTS = {"referrer-policy": "no-referrer", "x-frame-options": "DENY"}
"""What a browser heeds of what it shows by itself."""
_NO_DOCUMENTS = frozenset((_TYPES["js"], _TYPES["css"]))


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    tag: str
    """Without its quotes."""
    small: bytes | None
    """In gzip, where that is smaller."""


class Page:
    """Static files of the package, and nothing else: no path is ever joined to a folder."""

    def __init__(self) -> None:
        self.router = APIRouter(include_in_schema=False)
        self.router.add_api_route("/", self.root, methods=["GET", "HEAD"])
        self.router.add_api_route("/page/{name}", self.file, methods=["GET", "HEAD"])

    async def root(self, request: Request) -> Response:
        """The page where `Accept` names HTML, as browsers do; else the index."""
        html = wants_html(request.headers.get("accept"))
        return _answer(
            request, _files()["index.html"] if html else _index(request.app.version), "accept, accept-encoding"
        )

    async def file(self, request: Request, name: str) -> Response:
        """One of the page's files. Raises Refused, 404."""
        found = _files().get(name)
        if found is None or name == "index.html":
            raise Refused(404, f"The page has no file {name[:100]!r}.", code="unknown_route")
        return _answer(request, found, "accept-encoding")


def _answer(request: Request, found: _File, varies_by: str) -> Response:
    """Each form has a tag of its own (RFC 9110, 8.8.3.3)."""
    small = found.small if takes_gzip(request.headers.get("accept-encoding")) else None
    tag = f'"{found.tag}"' if small is None else f'"{found.tag}-gzip"'
    headers: dict[str, Any] = {**_HEADERS, "vary": varies_by, "etag": tag}
    if found.media_type not in _NO_DOCUMENTS:
        headers |= _OF_DOCUMENTS
    if matches_entity_tag(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    if small is not None:
        headers["content-encoding"] = "gzip"
    return Response(found.content if small is None else small, media_type=found.media_type, headers=headers)


@cache
def _index(version: str) -> _File:
    routes = {
        "models": "/v1/models",
        "chat": "/v1/chat/completions",
        "completions": "/v1/completions",
        "responses": "/v1/responses",
        "status": "/api/status",
        "events": "/api/events",
        "openapi": "/openapi.json",
        "health": "/healthz",
    }
    body = msgspec.json.format(msgspec.json.encode({"name": "weft", "version": version, "routes": routes})) + b"\n"
    return _file(body, "application/json")


@cache
def _files() -> dict[str, _File]:
    """All files by name, read and compressed once: 74 kB, 27 kB in gzip."""
    found: dict[str, _File] = {}
    for each in files("weft_gateway.inbound.page").joinpath("files").iterdir():
        media_type = _TYPES.get(each.name.rpartition(".")[2])
        if media_type is not None:
            found[each.name] = _file(each.read_bytes(), media_type)
    return found


def _file(content: bytes, media_type: str) -> _File:
    small = gzip.compress(content, mtime=0)
    tag = blake2b(content, digest_size=12).hexdigest()
    return _File(content, media_type, tag, small if len(small) < len(content) else None)
