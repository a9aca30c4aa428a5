"""A mesh that `weft dev` runs from a copy of the source tree, whose files may be changed."""

import os
import shutil
from pathlib import Path

from weft_testing.story import MeshUnderTest, until

_TOPS = ("libs", "services", "models")


class MeshOfTree(MeshUnderTest):
    """One mesh on a copy of a tree. `anew` is what a saved file is to lead to."""

    command = "dev"

    def __init__(self, folder: Path, source: Path) -> None:
        """`source` is the tree to copy; what was compiled comes along."""
        folder = folder.resolve()
        self.tree = folder / "tree"
        for top in _TOPS:
            shutil.copytree(source / top, self.tree / top, ignore=shutil.ignore_patterns("tests", "training"))
        for file in (*source.glob("*.toml"), *source.glob("*.lock")):
            shutil.copy2(file, self.tree)
        paths = (str(each) for top in _TOPS for each in sorted((self.tree / top).glob("*/src")))
        super().__init__(folder, PYTHONPATH=os.pathsep.join(paths))

    def read(self, file: str) -> str:
        return (self.tree / file).read_text()

    def save(self, file: str, text: str) -> None:
        (self.tree / file).write_text(text)

    def said(self) -> str:
        """All that `weft dev` has printed."""
        return (self.folder / "launcher.out").read_text()

    def pids(self) -> dict[str, int]:
        """Every process by what it is; empty while one of them has none."""
        parts = {row["name"]: row["pid"] for row in self.run_file()["parts"]}
        agents, hosts = self.agents(), self.hosts()
        if None in parts.values() or len(agents) != 1 or len(hosts) != 1:
            return {}
        return parts | {"agent": agents[0].pid, "host": hosts[0].pid}

    def anew(self, before: dict[str, int], *names: str) -> dict[str, int]:
        """All processes, once these are others than before and all parts are ready. Raises NotInTime."""

        def look() -> dict[str, int]:
            now = self.pids()
            ready = all(row["state"] == "ready" for row in self.run_file()["parts"])
            return now if now and ready and all(now[name] != before[name] for name in names) else {}

        return until(f"{', '.join(names)} anew and ready", look, 60)
