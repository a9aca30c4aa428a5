"""Rules for single headers of a request, whose names are given in lower case."""

import re
from collections.abc import Iterable

from weft_contracts.uploads import MOST_CHUNK

from weft_gateway.domain.refused import Refused

_SANE = re.compile(r"[A-Za-z0-9._:-]{1,64}")
"""Correlation ids that are taken."""


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The first header of a name given in lower case."""
    for key, value in headers:
        if key == name:
            return value.decode("latin-1")
    return None


def check_chunk(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a part of a file whose length isn't told, is too much, or is compressed. Raises Refused."""
    told = dict(headers)
    if told.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refused(415, "A compressed part of a file is not supported.", param="content-encoding")
    closing = {"connection": "close"}
    if b"transfer-encoding" in told:
        raise Refused(411, "A part of a file says its length: want Content-Length.", headers=closing)
    if int(told.get(b"content-length", b"0")) > MOST_CHUNK:
        what = f"The part is larger than {MOST_CHUNK} bytes; send the file in smaller ones."
        raise Refused(413, what, code="body_too_large", headers=closing)


def check_json(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a body that doesn't say that it is plain JSON. Raises Refused, 415."""
    kind = encoding = b""
    for name, value in headers:
        if name == b"content-type":
            kind = value
        elif name == b"content-encoding":
            encoding = value
    if encoding and encoding.lower() != b"identity":
        raise Refused(415, "A compressed body is not supported; send plain JSON.", param="content-encoding")
    if kind != b"application/json" and not _is_json(kind):
        said = f"{kind[:100].decode('latin-1')!r}" if kind else "missing"
        what = f"The header Content-Type is {said}; a JSON body says application/json."
        raise Refused(415, what, param="content-type", code="not_json")


def checked_correlation_id(given: str | None) -> str | None:
    """The caller's `x-request-id`; None if there is none. Raises Refused for one that can't be taken."""
    if given is None:
        return None
    if _SANE.fullmatch(given) is None:
        raise Refused(
            400,
            "`x-request-id` must have 1 to 64 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'.",
            param="x-request-id",
        )
    return given


def matches_entity_tag(if_none_match: str | None, tag: str) -> bool:
    """Whether an `If-None-Match` (RFC 9110, 13.1.2) names this entity tag; weak and strong ones compare alike."""
    if if_none_match is None:
        return False
    given = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in given or given == ["*"]


def wants_html(accept: str | None) -> bool:
    """Whether an `Accept` (RFC 9110, 12.5.1) asks for a page rather than data.

    So it is where HTML is named and no JSON form is preferred. `*/*` alone is a program's, which gets data.
    """
    html = json = 0.0
    for part in (accept or "").lower().split(","):
        media_type, _, parameters = part.partition(";")
        match media_type.strip():
            case "text/html" | "application/xhtml+xml":
                html = max(html, _weight(parameters))
            case "application/json" | "text/json":
                json = max(json, _weight(parameters))
            case _:
                pass
    return html > 0.0 and html >= json


def takes_gzip(accept_encoding: str | None) -> bool:
    """Whether an `Accept-Encoding` (RFC 9110, 12.5.3) takes gzip. Who sends none may take it, and need not: no."""
    named: float | None = None
    any_other = 0.0
    for part in (accept_encoding or "").lower().split(","):
        coding, _, parameters = part.partition(";")
        match coding.strip():
            case "gzip" | "x-gzip":
                named = max(named or 0.0, _weight(parameters))
            case "*":
                any_other = _weight(parameters)
            case _:
                pass
    return (any_other if named is None else named) > 0.0


def _weight(parameters: str) -> float:
    """`q`, from 0 to 1; what can't be read counts as nothing."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


def _is_json(kind: bytes) -> bool:
    essence = kind.partition(b";")[0].strip().lower()
    return essence == b"application/json" or (essence.startswith(b"application/") and essence.endswith(b"+json"))
