from collections.abc import Generator
from pathlib import Path

import pytest
from weft_files import Bounds, Reach, Resolver, Store
from weft_testing.wanted_files import QUICK


@pytest.fixture
def bounds() -> Bounds:
    """Small, so that little files show what large ones do."""
    return QUICK


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", keep_free=0)


@pytest.fixture
def resolver(store: Store, bounds: Bounds) -> Generator[Resolver]:
    made = Resolver(store, Reach(["127.0.0.1"]), bounds=bounds)
    yield made
    made.close()
