"""What several tests of the command line share."""

import threading
from collections.abc import Iterator

import pytest

from .fake_gateway import FakeGateway


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    """A gateway for the commands to ask."""
    fake = FakeGateway()
    thread = threading.Thread(target=fake.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield fake
    fake.server.shutdown()
    thread.join()
    fake.server.server_close()
