"""Meshes for stories: one that stories share and leave as it is, and new ones for those that break things."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest

# Who runs in the background of a script has Ctrl-C ignored, and so would all the commands that the stories start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def calm_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A running mesh with the built-in model. Stories that use it change nothing that others see."""
    with MeshUnderTest(tmp_path_factory.mktemp("calm")) as mesh:
        yield mesh


@pytest.fixture(scope="session")
def shaken_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A running mesh of one worker whose stories add models, each under a name of its own, and kill what comes back:
    whoever uses it leaves the built-in model ready, and names the replica that it means."""
    with MeshUnderTest(tmp_path_factory.mktemp("shaken")) as mesh:
        yield mesh


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[MeshUnderTest]:
    """A running mesh of one worker, of the story's own."""
    with MeshUnderTest(tmp_path) as mesh:
        yield mesh
