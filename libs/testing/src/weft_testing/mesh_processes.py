"""The processes of a mesh under test, as anybody sees them on its machine."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil


class MeshProcesses:
    """Those of the mesh whose files lie in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def run_file(self) -> dict[str, Any]:
        """What the launcher says of its parts."""
        return json.loads((self.state / "run.json").read_text())

    def part(self, name: str) -> dict[str, Any]:
        """One part as the launcher sees it: name, state, pid, restarts, log."""
        return next(part for part in self.run_file()["parts"] if part["name"] == name)

    def hosts(self, worker: str = "worker-1") -> list[psutil.Process]:
        """The engine hosts of a worker."""
        return self._family(worker, "weft_engine")

    def agents(self, worker: str = "worker-1") -> list[psutil.Process]:
        """The agent of a worker, under its supervisor: one, or none while it is started again."""
        return self._family(worker, "--agent")

    def _family(self, worker: str, word: str) -> list[psutil.Process]:
        """The living descendants of a worker's supervisor whose command has a word."""
        pid = self.part(worker)["pid"]
        found: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            for each in psutil.Process(pid).children(recursive=True) if pid else ():
                with suppress(psutil.NoSuchProcess):  # a zombie is one too
                    if any(word in argument for argument in each.cmdline()):
                        found.append(each)
        return found

    def processes(self) -> list[psutil.Process]:
        """Every process on this machine that belongs to this mesh, whoever its parent is."""
        found: list[psutil.Process] = []
        mark = f"{self.folder}/"
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and (
                    any(mark in word for word in process.cmdline())
                    or any(mark in value for key, value in process.environ().items() if key.startswith("WEFT"))
                ):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        return found
