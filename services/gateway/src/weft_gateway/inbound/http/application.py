"""The ASGI application: every route but the hot ones, and one sentence for whatever goes wrong."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute
from weft_runtime.logs import get_logger

from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.auth_middleware import AuthMiddleware, respond
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import DocumentedAPI

_log: Any = get_logger("weft.gateway.http")


def application(
    routers: Sequence[APIRouter],
    health_routes: Sequence[BaseRoute],
    *,
    authenticator: Authenticator,
    max_body: int,
    max_admin_body: int = 256 << 10,
    instance: str,
) -> FastAPI:
    """The application over all routers, behind the auth middleware. Bounds of bodies are in bytes."""
    app = DocumentedAPI(
        title="Weft",
        version=_version(),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=[*health_routes],
        strict_content_type=False,
    )
    for router in routers:
        for route in router.routes:
            assert not isinstance(route, APIRoute) or route.body_field is None or isinstance(route, JSONRoute), route
        app.include_router(router)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)
    app.add_middleware(
        AuthMiddleware, authenticator=authenticator, max_body=max_body, max_admin_body=max_admin_body, instance=instance
    )
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return respond(request.url.path, error)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, headers = request.url.path, dict(error.headers or {})
    match error.status_code:
        case 404:
            refused = Refused(404, f"There is no route {path[:200]}; see /openapi.json.", code="unknown_route")
        case 405:
            allowed = headers.get("Allow", headers.get("allow", "another method"))
            if "GET" in allowed and "HEAD" not in allowed:
                headers["Allow"] = allowed = f"{allowed}, HEAD"
            refused = Refused(
                405, f"{path[:200]} does not take {request.method}; it takes {allowed}.", code="wrong_method"
            )
        case status:
            refused = Refused(status, f"{error.detail}")
    refused.headers.update(headers)
    return respond(path, refused)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond(request.url.path, sentence_of(error.errors()))


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("route failed", path=request.url.path, exc_info=error)
    return respond(request.url.path, Refused(500, "The gateway failed; its log says why.", code="internal"))


def sentence_of(errors: Sequence[Any]) -> Refused:
    """The first of pydantic's complaints as a sentence."""
    first: dict[str, Any] = errors[0]
    kind: str = first.get("type", "")
    where = [str(part) for part in first.get("loc", ())]
    if where and where[0] in ("body", "query", "path", "header"):
        place, where = where[0], where[1:]
    else:
        place = "body"
    field = ".".join(where)
    if kind == "missing":
        what = f"`{field}` is missing." if field else "The body is empty; a JSON object is expected."
        return Refused(400, what, param=field or None, code="missing_field")
    if not field and kind in ("model_attributes_type", "dict_type", "model_type"):
        return Refused(400, "The body must be a JSON object (content-type application/json).", code="wrong_type")
    if kind == "extra_forbidden":
        return Refused(
            400, f"`{field}` is not a field that is known here; leave it out.", param=field, code="unknown_field"
        )
    message = str(first.get("msg", "it does not fit")).removeprefix("Value error, ")
    subject = f"`{field}`" if field else f"The {place}"
    return Refused(400, f"{subject} does not fit: {message[:1].lower()}{message[1:]}.", param=field or None)


def _version() -> str:
    try:
        return version("weft-gateway")
    except PackageNotFoundError:
        return "0"
