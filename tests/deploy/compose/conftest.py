"""Images and a running mesh for the tests of compose: both made once, and gone in the end."""

import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from weft_servers.nats_server import find_binary
from weft_testing.containers.composed import SERVICES, STARTED, Composed
from weft_testing.containers.images import PREFIX, Builder, builder

ROOT = Path(__file__).resolve().parents[3]
STANDINS = Path(__file__).parent / "standins"
SEEN = ("metrics-key", "prometheus", "collector", "observer-place", "observer")
"""Of the profiles `observability` and `observer`, what can be run here."""


@dataclass(frozen=True)
class Built:
    """What compose is to use."""

    builder: Builder
    images: dict[str, str]
    """By target."""
    standins: dict[str, str]
    """By service."""


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft-containers"


@pytest.fixture(scope="session")
def built() -> Built:
    """All targets, and the stand-ins."""
    builds = builder(ROOT, _cache())
    return Built(builds, builds.build((*SERVICES, "worker", "tool", "observer", "worker-nvidia")), standins(builds))


@pytest.fixture(scope="session")
def few() -> Built:
    """What founds a mesh and takes commands."""
    builds = builder(ROOT, _cache())
    return Built(builds, builds.build(("registry", "gateway", "tool")), standins(builds, "nats"))


def standins(builds: Builder, *wanted: str) -> dict[str, str]:
    """What stands for images from outside, by the service that it is of: all, or those that are wanted."""
    bases = {"nats": builds.servers, "postgres": builds.servers, "prometheus": builds.base, "collector": builds.base}
    prometheus = shutil.which("prometheus")
    assert prometheus, "prometheus is not here: install Debian's package `prometheus`"
    names = {target: f"localhost/weft-standin/{target}:1" for target in wanted or bases}
    with tempfile.TemporaryDirectory() as made:
        context = Path(shutil.copytree(STANDINS, Path(made) / "context"))
        shutil.copy2(find_binary(), context / "nats-server")
        shutil.copy2(prometheus, context / "prometheus")
        for target, name in names.items():
            told = (f"--build-arg=BASE={bases[target]}", "--target", target, "--tag", name)
            builds.podman.run("build", "--quiet", *told, context)
    return names


@contextmanager
def project(
    built: Built,
    name: str,
    more: tuple[str, ...] = (),
    started: tuple[str, ...] = STARTED,
    settings: Mapping[str, str] = {},
) -> Generator[Composed]:
    """A project of compose's, with those files laid over its own, of which nothing is left in the end."""
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        port, prometheus = (each.getsockname()[1] for each in (free, other))
    told = {
        "WEFT_IMAGES": PREFIX,
        "WEFT_VERSION": built.builder.version,
        "WEFT_BASE": built.builder.base,
        "WEFT_PORT": str(port),
        "WEFT_PROMETHEUS_PORT": str(prometheus),
        "WEFT_DRAIN_TIMEOUT": "20",
        **{f"WEFT_{service.upper()}_IMAGE": image for service, image in built.standins.items()},
    }
    files = tuple(ROOT / f"deploy/compose/compose{each}.yaml" for each in ("", *(f".{one}" for one in more)))
    composed = Composed(
        built.builder.podman,
        files,
        f"weft-{name}-{hashlib.sha256(str(os.getpid()).encode()).hexdigest()[:8]}",
        port,
        told | dict(settings),
        started,
    )
    try:
        composed.up()
        yield composed
    finally:
        composed.remove()


@pytest.fixture(scope="module")
def mesh(built: Built) -> Iterator[Composed]:
    """A mesh that runs, and answers; it is watched, and tells what happens."""
    settings = {
        "WEFT_OTLP_ENDPOINT": "http://collector:4318",
        "WEFT_WEBHOOK_URL": "http://collector:4318/hook",
        "WEFT_WEBHOOK_PLAIN": "true",
    }
    with project(built, "test", started=(*STARTED, *SEEN), settings=settings) as composed:
        yield composed
