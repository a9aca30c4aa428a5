"""What several tests of the command line share."""

from collections.abc import Iterator

import pytest
from weft_testing.fake_gateway import FakeGateway, fake_gateway


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    """A gateway to ask."""
    with fake_gateway() as fake:
        yield fake
