"""From a saved file to the service that is ready with it, under `weft dev` (goal: 5 s).

    python bench/dev.py [--rounds 3]

A mesh runs from a copy of this tree. Each round saves one file of each service, of the agent, and of the engine; the
time runs until the process of the file is another one and all parts are ready; for the engine, whose whole worker
starts anew, until its model answers. CPU is what the new process took for
its start.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psutil
from weft_testing.story import until
from weft_testing.tree_mesh import MeshOfTree

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "scheduler": "services/scheduler/src/weft_scheduler/app.py",
    "reconciler": "services/reconciler/src/weft_reconciler/app.py",
    "registry": "services/registry/src/weft_registry/app.py",
    "metadata-cache": "services/metadata-cache/src/weft_metadata_cache/app.py",
    "gateway": "services/gateway/src/weft_gateway/app.py",
    "agent": "services/worker-agent/src/weft_worker_agent/app.py",
    "host": "libs/engine/src/weft_engine/host.py",
}
"""By the process that is another one then."""


def main() -> None:
    """Print a line for each kind of process: medians, and all values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    took: dict[str, list[float]] = {name: [] for name in FILES}
    cpu: dict[str, list[float]] = {name: [] for name in FILES}
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder, MeshOfTree(Path(folder), ROOT) as mesh:
        mesh.ask()
        for name, file in (each for _ in range(rounds) for each in FILES.items()):
            before = until("all have processes", mesh.pids)
            began = time.perf_counter()
            mesh.save(file, mesh.read(file) + "\n")
            now = mesh.anew(before, name)
            if name == "agent":
                until("the agent is ready", lambda: answers(mesh), 60)
            if name == "host":  # what asks an engine for its profile looks like one for a moment
                until("the model answers", mesh.ask, 60)
                now = until("all have processes", mesh.pids)
            took[name].append(time.perf_counter() - began)
            cpu[name].append(sum(psutil.Process(now[name]).cpu_times()[:2]))
            mesh.ask()
    print(f"load average {os.getloadavg()[0]:.1f}")
    print(f"{'saved for':<16}{'s to ready':>12}{'s of CPU':>10}   all")
    for name in FILES:
        print(f"{name:<16}{median(took[name]):>12.1f}{median(cpu[name]):>10.2f}   {' '.join(_shown(took[name]))}")


def answers(mesh: MeshOfTree) -> bool:
    """Whether the worker's own port says that it is ready: the launcher looks at that only until the first time."""
    return mesh.http.get(f"http://127.0.0.1:{mesh.part('worker-1')['port']}/readyz").status_code == 200


def _shown(values: list[float]) -> Iterator[str]:
    return (f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main()
