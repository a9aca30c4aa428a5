"""How long one service takes to start on a million-event log, in CPU and wall seconds.

    python bench/million.py [--commits 1000000] [--starts 3] [--tail 5000] [--service scheduler]

Fills a real server's log (see `long_log.py`), then starts the service on it and waits until it has folded all of it:
once without a snapshot, then, after the log has grown by `--tail` commits, from the snapshot that the first start has
written, and at last on an empty log in another folder, which is what a start costs by itself. Goals: 15 s without a
snapshot, 1 s with one. Filling takes a minute or two and about a gigabyte in the folder for temporary files.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
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
SERVICES = ("scheduler", "reconciler", "registry")


async def fill(long: LongLog, log: EventLog, commits: int) -> None:
    """Append until the log has so many commits, in batches, and say what that cost."""
    before = await log.head()
    began, head = time.perf_counter(), before
    for batch in long.batches():
        sequences = await log.append(*batch)
        long.took(sequences)
        head = sequences[-1]
        if head >= commits:
            break
    wall = time.perf_counter() - began
    print(f"filled up to {head:,} commits in {wall:.0f} s ({(head - before) / wall:,.0f} /s)", flush=True)


Figures = tuple[float, float, float]


async def start(mesh: MeshServer, service: str, folder: Path, *, snapshot: bool, write: int = 0) -> Figures:
    """Wall and CPU seconds of one start, and the server's CPU seconds meanwhile. It then waits for a snapshot that the
    service writes behind the position `write`. Raises AssertionError where it started as `snapshot` doesn't say."""
    server = psutil.Process(mesh.server.pid)
    before, began = cpu_of(server), time.perf_counter()
    settings = mesh_settings(mesh, cast("Writer", service))
    async with running(["-m", f"weft_{service}"], folder, settings) as process:
        own = psutil.Process(process.process.pid)

        async def folded() -> bool:
            assert process.process.returncode is None, process.text()
            return '"caught up"' in process.text()

        async def ready() -> bool:
            return (await process.get("/readyz"))[0] == 200

        await until(folded, START_S)
        figures = time.perf_counter() - began, cpu_of(own), cpu_of(server) - before
        await until(ready, START_S)
        memory = own.memory_full_info().pss / 1e6
        print(
            f"{service}: folded after {figures[0]:.1f} s wall, {figures[1]:.1f} s CPU (server {figures[2]:.1f} s); "
            f"ready, with its first decisions, after {time.perf_counter() - began:.1f} s and {cpu_of(own):.1f} s; "
            f"{memory:.0f} MB PSS   load average {os.getloadavg()[0]:.1f}",
            flush=True,
        )

        async def written() -> bool:
            at = [line["position"] for line in process.lines() if line["event"] == "snapshot written"]
            return max(at, default=0) > write

        if write:
            before = cpu_of(own)
            await until(written, 120.0)
            print(f"a snapshot was written {cpu_of(own) - before:.1f} CPU s later", flush=True)
        for line in process.lines():
            if line["event"] in ("starts from a snapshot", "snapshot written"):
                print({key: line[key] for key in line if key not in ("service", "instance", "timestamp", "level")})
        assert snapshot == ("starts from a snapshot" in process.text())
        await process.terminate()
    return figures


def median(what: str, figures: Sequence[Figures]) -> None:
    """Print the medians."""
    wall, own, server = (statistics.median(column) for column in zip(*figures, strict=True))
    print(
        f"{what}: {wall:.2f} s wall, {own:.2f} s CPU, server {server:.2f} s CPU (median of {len(figures)})", flush=True
    )


async def main(commits: int, starts: int, tail: int, service: str) -> None:
    """Print the figures, and their medians."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as name:
        folder, empty = Path(name) / "long", Path(name) / "empty"
        folder.mkdir()
        empty.mkdir()
        async with running_mesh_server(empty) as mesh:
            nothing = [await start(mesh, service, empty, snapshot=False) for _ in range(starts)]
        async with running_mesh_server(folder) as mesh:
            long, log = LongLog(), EventLog(await mesh.root(), actor="bench")
            await fill(long, log, commits)
            whole = await start(mesh, service, folder, snapshot=False, write=commits - 10_000)
            if tail:
                await fill(long, log, commits + tail)
            some = [await start(mesh, service, folder, snapshot=True) for _ in range(starts)]
    median("an empty log", nothing)
    median("without a snapshot", [whole])
    median(f"with one, {tail:,} commits behind", some)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=1_000_000)
    parser.add_argument("--starts", type=int, default=3, help="how often the service is started from a snapshot")
    parser.add_argument("--tail", type=int, default=5_000, help="commits behind the snapshot: half of the most")
    parser.add_argument("--service", choices=SERVICES, default="scheduler")
    given = parser.parse_args()
    asyncio.run(main(given.commits, given.starts, given.tail, given.service))
