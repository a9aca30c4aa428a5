"""A service's own small HTTP server: health, readiness, metrics, and what it adds."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, Gauge
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from weft_contracts.catalogue import Writer
from weft_eventlog import Projection, Snapshots
from weft_eventlog.snapshots.mark import Head

from weft_runtime.bounded_http import BoundedHttpProtocol
from weft_runtime.health import Health
from weft_runtime.metrics_page import metrics_page

_TASKS = Gauge("weft_asyncio_tasks", "Asyncio tasks of this process, at rest a fixed number")
_START = Gauge("weft_snapshot_start_position", "Log position of the snapshot that the fold went on from", ["fold"])
_NEWEST = Gauge("weft_snapshot_newest_position", "Log position of the last snapshot that was written here", ["fold"])


class CannotListen(Exception):
    """The address is taken, or this machine doesn't have it. uvicorn has logged why."""


class QuietServer(uvicorn.Server):
    """uvicorn without its own signal handling and exit: the runtime starts and ends the service."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to exit. Raises CannotListen."""
        try:
            await super().serve(sockets)
        except SystemExit:
            where = f"{self.config.host}:{self.config.port}"
            raise CannotListen(
                f"{where} can't be listened on: choose another by WEFT_HTTP_HOST, WEFT_HTTP_PORT"
            ) from None


def health_routes(health: Health) -> list[BaseRoute]:
    """`/healthz`: 503 where this process itself is not well, else 200; each part's problem either way, also what is
    wrong in the mesh, which no new start would mend. `/readyz`: 200 or 503 with what is missing; `/metrics`."""

    async def healthz(_: Request) -> Response:
        problems, sound = health.problems, health.sound
        return JSONResponse(
            {"status": ("degraded" if problems else "ok") if sound else "unhealthy", "problems": problems},
            status_code=200 if sound else 503,
        )

    async def readyz(_: Request) -> Response:
        return JSONResponse(
            {"ready": health.ready, "waiting_for": health.waiting_for},
            status_code=200 if health.ready else 503,
        )

    async def metrics(_: Request) -> Response:
        _TASKS.set(len(asyncio.all_tasks()))
        return Response(await metrics_page(), media_type=CONTENT_TYPE_LATEST)

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]


def projections_route(projections: Mapping[Projection, Callable[[], str] | None]) -> BaseRoute:
    """`/projections`: how far each fold is, what keeps it from being decided from, and its content's digest.

    The digest is computed at the call: about 2 s of CPU for 10,000 replicas.
    """

    async def show(_: Request) -> Response:
        return JSONResponse(
            [
                {
                    "name": projection.name,
                    "position": projection.position,
                    "halted": projection.halted,
                    "suspects": {str(aggregate): why for aggregate, why in projection.suspects.items()},
                    "digest": digest() if digest else None,
                    "snapshots": _snapshots(projection),
                }
                for projection, digest in projections.items()
            ]
        )

    return Route("/projections", show)


def _snapshots(projection: Projection) -> dict[str, int] | None:
    """Where the snapshot stands that the fold went on from, and the last that it wrote; 0 for none of them."""
    found = projection.snapshots
    return None if found is None else {"start": _position(found.start), "newest": _position(found.newest)}


def _position(head: Head | None) -> int:
    return head.sequence if head is not None else 0


def watch_snapshots(fold: str, snapshots: Snapshots) -> None:
    """Let `/metrics` tell of a fold's snapshots. One fold of a name in a process."""
    _START.labels(fold).set_function(lambda: _position(snapshots.start))
    _NEWEST.labels(fold).set_function(lambda: _position(snapshots.newest))


def asyncapi_route(writer: Writer, subscriptions: Callable[[], Iterable[str]]) -> BaseRoute:
    """`/asyncapi.json`: what this service sends, by the catalogue, and what it receives, by its subscriptions.

    Made at the call: half a second of CPU the first time.
    """

    async def show(_: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(_document, writer, tuple(subscriptions())))

    return Route("/asyncapi.json", show)


def _document(writer: Writer, subscriptions: Sequence[str]) -> dict[str, Any]:
    from weft_contracts.channels import heard_through, sent_by

    from weft_runtime import asyncapi

    return asyncapi.of_service(writer, version("weft-runtime"), sent_by(writer), heard_through(*subscriptions))


@contextlib.asynccontextmanager
async def _nothing(_: Starlette) -> AsyncGenerator[None]:
    yield


def app(health: Health, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """The application of a service that has no other HTTP work than these routes."""
    return Starlette(routes=[*health_routes(health), *routes], lifespan=_nothing)


def server(application: Starlette, host: str, port: int) -> QuietServer:
    """A server for an application, to be run as a root task. A request's head has 64 KiB and 30 s. Requests get 3 s at
    the stop."""
    return QuietServer(
        uvicorn.Config(
            application,
            host=host,
            port=port,
            http=BoundedHttpProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=3,
        )
    )
