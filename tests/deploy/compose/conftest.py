"""Images and a running mesh for the tests of compose: both made once, and gone in the end."""

import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from weft_servers.nats_server import find_binary
from weft_testing.containers.composed import Composed
from weft_testing.containers.images import PREFIX, VERSION, Builder, builder

ROOT = Path(__file__).resolve().parents[3]
STANDINS = Path(__file__).parent / "standins"


@dataclass(frozen=True)
class Built:
    """What compose is to use."""

    builder: Builder
    images: dict[str, str]
    """By target."""
    nats: str
    postgres: str


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft-containers"


@pytest.fixture(scope="session")
def built() -> Built:
    """All targets, and the stand-ins."""
    builds = builder(ROOT, _cache())
    targets = (
        "registry",
        "scheduler",
        "reconciler",
        "metadata-cache",
        "gateway",
        "worker",
        "tool",
        "observer",
        "worker-nvidia",
    )
    images = builds.build(targets)
    with tempfile.TemporaryDirectory() as made:
        context = Path(shutil.copytree(STANDINS, Path(made) / "context"))
        shutil.copy2(find_binary(), context / "nats-server")
        names = {target: f"localhost/weft-standin/{target}:1" for target in ("nats", "postgres")}
        for target, name in names.items():
            builds.podman.run(
                "build", "--quiet", f"--build-arg=BASE={builds.servers}", "--target", target, "--tag", name, context
            )
    return Built(builds, images, names["nats"], names["postgres"])


@pytest.fixture(scope="module")
def mesh(built: Built) -> Iterator[Composed]:
    """A mesh that runs, and answers."""
    project = f"weft-test-{hashlib.sha256(str(os.getpid()).encode()).hexdigest()[:8]}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {
        "WEFT_IMAGES": PREFIX,
        "WEFT_VERSION": VERSION,
        "WEFT_BASE": built.builder.base,
        "WEFT_NATS_IMAGE": built.nats,
        "WEFT_POSTGRES_IMAGE": built.postgres,
        "WEFT_PORT": str(port),
        "WEFT_DRAIN_TIMEOUT": "20",
    }
    composed = Composed(built.builder.podman, ROOT / "deploy/compose/compose.yaml", project, port, env)
    try:
        composed.up()
        yield composed
    finally:
        composed.remove()
