"""Refusals of the node's own server, as RFC 9457 has them."""

from collections.abc import Mapping

from starlette.responses import JSONResponse


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """One sentence for people, and the status."""
    body = {"status": status, "detail": detail}
    return JSONResponse(body, status, dict(headers or {}), media_type="application/problem+json")
