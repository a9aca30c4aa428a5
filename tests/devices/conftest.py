"""A mesh on a machine with devices. Nothing here runs without them, and without being asked for."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from weft_testing.story import MeshUnderTest

VARIABLE = "WEFT_TEST_DEVICES"
_NEEDS = {"test_real_devices.py": "1", "test_vulkan_in_software.py": "vulkan"}
"""Its value for each module."""
_ASK = ("nvidia-smi", "--format=csv,noheader,nounits", "--query-gpu=index,uuid,memory.total,memory.used")
MIB = 1 << 20


class Seen(NamedTuple):
    """A device as its vendor's tool tells of it; bytes."""

    number: int
    uuid: str
    memory: int
    used: int


def seen() -> list[Seen]:
    """All of them, now."""
    said = subprocess.run(_ASK, capture_output=True, text=True, timeout=60, check=True).stdout
    rows = [[part.strip() for part in line.split(",")] for line in said.splitlines() if line.strip()]
    return [Seen(int(number), uuid, int(memory) * MIB, int(used) * MIB) for number, uuid, memory, used in rows]


@pytest.fixture(scope="module", autouse=True)
def _asked_for(request: pytest.FixtureRequest) -> None:  # pyright: ignore[reportUnusedFunction]
    """One variable, off by default, says which runs; a machine without its devices is a failure then, and no skip."""
    needs = _NEEDS[request.path.name]
    if os.environ.get(VARIABLE) != needs:
        pytest.skip(f"needs devices: {VARIABLE}={needs} runs it, see tests/devices/README.md")
    if needs == "1":
        assert shutil.which("nvidia-smi"), f"{VARIABLE} is 1, and there is no nvidia-smi"


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh whose worker has nothing installed but what Weft brings."""
    with MeshUnderTest(tmp_path_factory.mktemp("devices")) as mesh:
        yield mesh


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
