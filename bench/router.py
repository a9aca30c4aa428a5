"""What the gateway's process takes for a streamed token and for a whole answer: CPU time by the kernel.

    python bench/router.py [--streams 100] [--ms 10] [--seconds 8] [--rounds 3]

A whole mesh with a simulated engine that gives a token every 10 ms to each of 100 connections: the conditions under
which other routers were measured (see the README). The load comes from another process (`load.py`).
"""

import os
import statistics
import tempfile
from pathlib import Path

import psutil
from mesh_cpu import cpu_of
from streams import MODEL, child, paced, simulated
from weft_testing.story import MeshUnderTest, until

FULL = 100
"""Tokens of a streamed answer."""


def cost(mesh: MeshUnderTest, unit: str, *words: str) -> tuple[float, float, float]:
    """Microseconds of the gateway's CPU for each `unit` (a key of the load), units a second, share of a core."""
    gateway = psutil.Process(mesh.pid("gateway"))
    before = cpu_of(gateway)
    found = child("load.py", mesh.url, MODEL, *words)
    spent = cpu_of(gateway) - before
    return 1e6 * spent / found[unit], found[unit] / found["seconds"], spent / found["seconds"]


def main() -> None:
    """Print the medians."""
    given = paced(__doc__, seconds=8, rounds=3).parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder, MeshUnderTest(Path(folder)) as mesh:
        mesh.deploy(MODEL, simulated(given.ms)).raise_for_status()
        until("the model answers", lambda: mesh.ready_replicas(MODEL), 60)
        common = ["--streams", str(given.streams), "--seconds", str(given.seconds)]
        for what, unit, words in (
            ("streamed token", "tokens", ["--tokens", str(FULL)]),
            ("whole answer of 1 token", "requests", ["--tokens", "1", "--whole"]),
        ):
            rounds = [cost(mesh, unit, *common, *words) for _ in range(given.rounds)]
            each, rate, share = (statistics.median(column) for column in zip(*rounds, strict=True))
            least = min(found[0] for found in rounds)
            print(
                f"{what:<26}{each:>8.1f} µs CPU of the gateway (least {least:.1f}), {rate:,.0f} /s, "
                f"{100 * share:.0f} % of a core   load average {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
