"""This tree's images, built as a user builds them, on bases that the tests made."""

import contextlib
import fcntl
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from weft_testing.containers import bases
from weft_testing.containers.podman import Podman, needed

VERSION = "0.1.0"
PREFIX = "localhost/weft"
_BOUND_S = 900.0


@dataclass(frozen=True)
class Builder:
    """What a build takes: the tree, the bases, the packages."""

    podman: Podman
    root: Path
    base: str
    servers: str
    """Base of what stands for NATS's and Postgres's images."""
    wheels: Path

    def build(self, targets: Iterable[str]) -> dict[str, str]:
        """The images of these targets, by target. What didn't change is there already."""
        with _alone(self.podman):
            return {target: self._build(target) for target in targets}

    def _build(self, target: str) -> str:
        name = f"{PREFIX}/{target}:{VERSION}"
        bases_told = [f"--build-arg=BASE={self.base}", f"--build-arg=NVIDIA_BASE={self.base}"]
        where = ["--file", self.root / "deploy/images/Containerfile", "--build-context", f"wheels={self.wheels}"]
        self.podman.run(
            "build", "--quiet", *bases_told, *where, "--target", target, "--tag", name, self.root, bound_s=_BOUND_S
        )
        return name


def builder(root: Path, folder: Path) -> Builder:
    """A builder on a store in this folder. Fails where containers can't be made here."""
    needed()
    podman = Podman.on(folder)
    with _alone(podman):
        return Builder(podman, root, *bases.all_of_them(podman, root))


@contextlib.contextmanager
def _alone(podman: Podman) -> Generator[None]:
    """Tests that begin at once make one base and one of each image."""
    with (podman.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
