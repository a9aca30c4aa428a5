"""Podman with settings and a store of the tests' own: nothing of the machine's is changed or used."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("podman", "buildah", "runc", "mmdebstrap", "podman-compose", "iptables", "netavark", "aardvark-dns")
_NEEDED = {
    "podman": "podman",
    "runc": "runc",
    "mmdebstrap": "mmdebstrap",
    "podman-compose": "podman-compose",
    "iptables": "iptables",
}
"""What is called, and the Debian package that has it."""
_CONF = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4000:4000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""
"""crun can't work with hybrid control groups, nor either of them raise a limit that the machine doesn't give."""
_BOUND_S = 120.0


def needed() -> None:
    """Fail with what to install where something is missing, or where containers can't be made."""
    if lacking := sorted({package for program, package in _NEEDED.items() if shutil.which(program) is None}):
        pytest.fail(
            f"containers are tested for real, and {', '.join(lacking)} are missing: as root, apt-get install"
            f" --no-install-recommends {' '.join(PACKAGES)}",
            pytrace=False,
        )
    if os.geteuid() != 0:
        pytest.fail("containers are tested as root: mmdebstrap and podman's networks need it here", pytrace=False)


@dataclass(frozen=True)
class Podman:
    """Podman on a store of its own."""

    folder: Path
    """Settings and store."""
    env: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def on(cls, folder: Path) -> "Podman":
        """With settings and store in a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "containers.conf").write_text(_CONF)
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
        )
        settings = {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "BUILDAH_ISOLATION": "chroot",
            "BUILDAH_FORMAT": "docker",
        }
        return cls(
            folder, {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")} | settings
        )

    def run(self, *argv: str | Path, check: bool = True, bound_s: float = _BOUND_S, **env: str) -> str:
        """What podman says. Raises AssertionError with all that it said where it fails."""
        return self.call(["podman", *argv], check=check, bound_s=bound_s, env=env).stdout

    def call(
        self, argv: Sequence[str | Path], *, check: bool = True, bound_s: float = _BOUND_S, env: Mapping[str, str] = {}
    ) -> subprocess.CompletedProcess[str]:
        """Another program on the same store, such as podman-compose."""
        done = subprocess.run(
            argv, env=self.env | dict(env), capture_output=True, text=True, timeout=bound_s, check=False
        )
        assert not check or done.returncode == 0, f"{' '.join(map(str, argv))}\n{done.stdout}{done.stderr}"
        return done

    def inspected(self, name: str, kind: str = "container") -> dict[str, Any]:
        """What podman knows of a container or an image."""
        (found,) = json.loads(self.run("inspect", "--type", kind, name))
        return found

    def has_image(self, name: str) -> bool:
        """Whether the store has it."""
        return self.call(["podman", "image", "exists", name], check=False).returncode == 0


def eventually(what: str, holds: Callable[[], Any], bound_s: float = 60.0) -> Any:
    """The first true answer. Raises AssertionError after the bound."""
    end = time.monotonic() + bound_s
    while True:
        if found := holds():
            return found
        assert time.monotonic() < end, f"not within {bound_s:g} s: {what}"
        time.sleep(0.5)
