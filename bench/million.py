"""How long one service takes to start on a million-event log, in CPU and wall seconds. Goal: 15 s.

    python bench/million.py [--commits 1000000] [--starts 3] [--service scheduler]

Fills a real server's log (see `long_log.py`), then starts the service on it and asks `/readyz` until it says 200.
Filling takes a minute or two and about a gigabyte in the folder for temporary files.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import cast

import psutil
from long_log import LongLog
from mesh_cpu import cpu_of
from weft_contracts.catalogue import Writer
from weft_eventlog import EventLog
from weft_testing.mesh_server import MeshServer, running_mesh_server
from weft_testing.service_process import mesh_settings, running
from weft_testing.waiting import until

START_S = 300.0
SERVICES = ("scheduler", "reconciler")


async def fill(log: EventLog, commits: int) -> None:
    """Append so many commits, in batches, and say what that cost."""
    long, began, head = LongLog(), time.perf_counter(), 0
    for batch in long.batches():
        sequences = await log.append(*batch)
        long.took(sequences)
        head = sequences[-1]
        if head >= commits:
            break
    wall = time.perf_counter() - began
    print(f"filled with {head:,} commits in {wall:.0f} s ({head / wall:,.0f} /s)", flush=True)


async def start(mesh: MeshServer, service: str, folder: Path) -> tuple[float, float, float]:
    """Wall and CPU seconds of one start, and the server's CPU seconds meanwhile."""
    server = psutil.Process(mesh.server.pid)
    before, began = cpu_of(server), time.perf_counter()
    settings = mesh_settings(mesh, cast("Writer", service))
    async with running(["-m", f"weft_{service}"], folder, settings) as process:
        own = psutil.Process(process.process.pid)

        async def ready() -> bool:
            assert process.process.returncode is None, process.text()
            return (await process.get("/readyz"))[0] == 200

        await until(ready, START_S)
        figures = time.perf_counter() - began, cpu_of(own), cpu_of(server) - before
        memory = own.memory_full_info().pss / 1e6
        print(
            f"{service}: ready after {figures[0]:.1f} s wall, {figures[1]:.1f} s CPU (server {figures[2]:.1f} s), "
            f"{memory:.0f} MB PSS   load average {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        await process.terminate()
    return figures


async def main(commits: int, starts: int, service: str) -> None:
    """Print the figures, and their medians."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as name:
        folder = Path(name)
        async with running_mesh_server(folder) as mesh:
            await fill(EventLog(await mesh.root(), actor="bench"), commits)
            figures = [await start(mesh, service, folder) for _ in range(starts)]
    wall, own, server = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"median of {starts}: {wall:.1f} s wall, {own:.1f} s CPU, server {server:.1f} s CPU")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=1_000_000)
    parser.add_argument("--starts", type=int, default=3, help="how often the service is started on it")
    parser.add_argument("--service", choices=SERVICES, default="scheduler")
    given = parser.parse_args()
    asyncio.run(main(given.commits, given.starts, given.service))
