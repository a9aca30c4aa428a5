"""Counts what clients are refused on every route but the hot ones, which count their own."""

from collections.abc import Callable
from typing import Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send


def route_label(path: str) -> Literal["v1", "api", "other"]:
    """The part of the API that a path belongs to: a metric's label must not grow with what clients make up."""
    match path.split("/", 2)[1:2]:
        case ["v1"]:
            return "v1"
        case ["api"]:
            return "api"
        case _:
            return "other"


class ErrorMetrics:
    """ASGI middleware around everything: also what the application answers for a route that failed."""

    def __init__(self, app: ASGIApp, refused: Callable[[int, str], None]) -> None:
        self._app = app
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                self._refused(message["status"], route_label(scope["path"]))
            await send(message)

        await self._app(scope, receive, counted)
