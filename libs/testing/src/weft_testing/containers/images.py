"""This tree's images, built as a user builds them, on bases that the tests made."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from weft_testing.containers import bases
from weft_testing.containers.podman import Podman, needed

PREFIX = "localhost/weft"
_BOUND_S = 900.0
_AT_ONCE = 2
"""A build waits for disks as much as it computes."""


@dataclass(frozen=True)
class Builder:
    """What a build takes: the tree, the bases, the packages."""

    podman: Podman
    root: Path
    base: str
    servers: str
    """Base of what stands for NATS's and Postgres's images."""
    wheels: Path
    version: str
    """Of the images: what is built of the same bears the same."""

    def build(self, targets: Sequence[str]) -> dict[str, str]:
        """The images of these targets, by target. One that is there is taken as it is."""
        first, *others = targets
        made = {first: self._built(first)}  # with it the stages that all share
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return made | dict(zip(others, pool.map(self._built, others), strict=True))

    def anew(self, target: str, index: Path) -> str:
        """Another image of a target, of which nothing is taken from an earlier build. `index`: the build's secret."""
        name = f"{PREFIX}/{target}:anew-{os.getpid()}"
        self._build(target, name, index, "--no-cache")
        return name

    def _built(self, target: str) -> str:
        name = f"{PREFIX}/{target}:{self.version}"
        with _alone(self.podman, target):
            if not self.podman.has_image(name):
                self._build(target, name, self._no_index())
        return name

    def _no_index(self) -> Path:
        """An empty secret: a layer has the folder in which any is mounted."""
        file = self.podman.folder / "index"
        file.touch()
        return file

    def _build(self, target: str, name: str, index: Path, *options: str) -> None:
        bases_told = [f"--build-arg=BASE={self.base}", f"--build-arg=NVIDIA_BASE={self.base}"]
        where = ["--file", self.root / "deploy/images/Containerfile", "--build-context", f"wheels={self.wheels}"]
        # the same whenever it is built
        told = ["--quiet", "--timestamp", "0", "--secret", f"id=index,src={index}", *bases_told, *where, *options]
        self.podman.run("build", *told, "--target", target, "--tag", name, self.root, bound_s=_BOUND_S)


def builder(root: Path, folder: Path) -> Builder:
    """A builder on a store in this folder. Fails where containers can't be made here."""
    needed()
    podman = Podman.on(folder)
    with _alone(podman, "bases"):
        made = bases.all_of_them(podman, root)
    return Builder(podman, root, *made, _version(root, [*made[:2], made[2].name]))


def _version(root: Path, made: list[str]) -> str:
    """A digest of all that images are built of, as `.dockerignore` says it."""
    lines = (root / ".dockerignore").read_text().splitlines()
    left_out = {line.removeprefix("**/") for line in lines if line.startswith("**/")}
    digest = hashlib.sha256(repr(made).encode())
    for taken in (root / line[1:] for line in lines if line.startswith("!")):
        for file in sorted(taken.rglob("*")) if taken.is_dir() else [taken]:
            if file.is_file() and not left_out & set(file.relative_to(root).parts):
                digest.update(f"{file.relative_to(root)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def _alone(podman: Podman, what: str) -> Generator[None]:
    """Tests that begin at once make one base and one of each image."""
    with (podman.folder / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
