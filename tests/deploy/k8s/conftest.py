"""The cluster that slow tests share, of images that are built as a user builds them."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_servers.nats_server import find_binary
from weft_testing.containers.images import builder

from .cluster import PARTS, Cluster
from .rendered import ROOT

STANDIN = "localhost/weft-standin/nats:1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Pods of the dev overlay, with two workers."""
    if shutil.which("catatonit") is None:
        pytest.fail("podman's pods need catatonit: as root, apt-get install catatonit", pytrace=False)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft-containers"
    builds = builder(ROOT, cache)
    made = builds.build([*(part for part in PARTS if part != "nats"), "worker"])
    context = Path(shutil.copytree(ROOT / "tests/deploy/compose/standins", tmp_path_factory.mktemp("nats") / "context"))
    shutil.copy2(find_binary(), context / "nats-server")
    told = (f"--build-arg=BASE={builds.servers}", "--target", "nats", "--tag", STANDIN)
    builds.podman.run("build", "--quiet", *told, context)
    images = {f"weft/{target}": image for target, image in made.items()} | {"nats": STANDIN}
    name = f"weft-k8s-{hashlib.sha256(str(os.getpid()).encode()).hexdigest()[:8]}"
    with Cluster(builds.podman, images, tmp_path_factory.mktemp("pods"), name) as running:
        yield running
