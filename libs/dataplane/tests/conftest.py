"""A served scripted engine and one open session with it."""

from collections.abc import AsyncIterator

import pytest
from weft_dataplane import SessionClient
from weft_dataplane.scripted import Host, served


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with served() as host:
        yield host


@pytest.fixture
async def client(host: Host) -> AsyncIterator[SessionClient]:
    client = await host.open()
    yield client
    await client.close()
