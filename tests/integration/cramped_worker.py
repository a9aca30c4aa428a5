"""A worker whose disk can be filled: its state lies on a file system that only it sees."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from weft_testing.story import MeshUnderTest, until

_MOUNT = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def can_mount() -> bool:
    """Whether a process may have a file system of its own here."""
    try:
        return 0 == subprocess.run([*_MOUNT, "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False).returncode
    except OSError:
        return False


class CrampedWorker:
    """A second worker whose state lies on a file system of one MiB that only it sees."""

    def __init__(self, mesh: MeshUnderTest, folder: Path) -> None:
        self._mesh, self._state = mesh, folder / "cramped"
        self._state.mkdir()
        self._log = folder / "cramped.log"
        self._filler = self._state / "filler"

    def __enter__(self) -> "CrampedWorker":
        made = self._mesh.weft("tokens", "create", "--auto-approve", "--json")
        token = json.loads(made.stdout)["secret"]
        program = (
            f"mount -t tmpfs -o size=1m tmpfs '{self._state}' && exec '{sys.executable}' -m weft_cli worker "
            f"--join {self._mesh.url} --name cramped --labels disk=tiny --state '{self._state}'"
        )
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*_MOUNT, program],
                env={k: v for k, v in os.environ.items() if not k.startswith("WEFT_")} | {"WEFT_JOIN_TOKEN": token},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

        def healthy() -> bool:
            assert self._process.poll() is None, self._log.read_text()
            nodes = self._mesh.status()["nodes"]
            return any(n["name"] == "cramped" and n["state"] == "healthy" and n["backends"] for n in nodes)

        until("the cramped worker is healthy", healthy, 60)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def fill(self) -> None:
        """Leave no byte."""
        with self._seen(self._filler).open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def make_room(self) -> None:
        self._seen(self._filler).unlink()

    def _seen(self, path: Path) -> Path:
        """A path as the worker sees it."""
        return Path(f"/proc/{self._process.pid}/root{path}")
