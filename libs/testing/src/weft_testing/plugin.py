"""Fixtures for pytest: real servers, each on its own folder and ports, ended with the test."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings
from weft_servers import port, postgres_server

from weft_testing import browser as browsers
from weft_testing.hand_log import HandLog
from weft_testing.mesh_server import MeshServer, running_mesh_server

# A busy machine makes no test fail: how long an example takes is never asserted.
settings.register_profile("weft", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("weft")


def pytest_configure() -> None:
    """Tests that run side by side choose ports of their own: a port is free until its server listens.

    They are workers of one pytest, or several pytests of which WEFT_TEST_PLACE says which of how many this is: "0/2".
    """
    place, count = (int(part) for part in os.environ.get("WEFT_TEST_PLACE", "0/1").split("/"))
    if "PYTEST_XDIST_WORKER" in os.environ:
        place, count = (
            int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")),
            int(os.environ["PYTEST_XDIST_WORKER_COUNT"]),
        )
    if count > 1:
        first, size = port._FIRST, (port._LAST - port._FIRST + 1) // count
        port._FIRST, port._LAST = first + place * size, first + (place + 1) * size - 1


@pytest.fixture
def hand_log() -> HandLog:
    """An empty log in the hand."""
    return HandLog()


@pytest_asyncio.fixture
async def mesh_server(tmp_path: Path) -> AsyncIterator[MeshServer]:
    """A real NATS server with the mesh's accounts and streams, new for each test."""
    async with running_mesh_server(tmp_path) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres_server.PostgresServer]:
    """A real Postgres, one for the whole test run. Tests keep apart by schema or by database."""
    with postgres_server.start(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[browsers.Browser]:
    """Headless Chromium for a file's tests. Without one they are skipped with the remedy; under CI they fail."""
    if (remedy := browsers.missing()) is not None:
        if os.environ.get("CI"):
            pytest.fail(remedy)
        pytest.skip(remedy)
    with browsers.Browser() as opened:
        yield opened
