"""What an idle mesh takes: CPU of one core over a minute (goal: under 8 %), memory as PSS (goal: under 650 MB).

    python bench/idle.py [--seconds 60] [--workers 1] [--settle 20]

A whole mesh with the built-in model ready, after one answered question. CPU is counted by the kernel, so others on
the machine move it little.
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from mesh_cpu import look
from weft_testing.story import MeshUnderTest


def main() -> None:
    """Print a line for each part, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--settle", type=float, default=20, help="seconds between the first answer and the first look")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        with MeshUnderTest(Path(folder), workers=given.workers) as mesh:
            mesh.ask()
            time.sleep(given.settle)
            before, began = look(mesh), time.perf_counter()
            time.sleep(given.seconds)
            after, wall = look(mesh), time.perf_counter() - began
        cpu, pss, count = Counter[str](), Counter[str](), Counter[str]()
        for process, now in after.items():
            spent = now.cpu - (before[process].cpu if process in before else 0.0)
            cpu[now.part] += spent  # pyright: ignore[reportArgumentType]  (Counter's values may be floats)
            pss[now.part] += now.pss
            count[now.part] += 1
    print(f"{wall:.0f} s, {given.workers} worker(s), load average {os.getloadavg()[0]:.1f}")
    print(f"{'part':<28}{'processes':>10}{'% of one core':>15}{'PSS, MB':>10}")
    for part in sorted(pss, key=lambda each: -pss[each]):
        print(f"{part:<28}{count[part]:>10}{100 * cpu[part] / wall:>15.2f}{pss[part] / 1e6:>10.1f}")
    print(f"{'all':<28}{count.total():>10}{100 * cpu.total() / wall:>15.2f}{pss.total() / 1e6:>10.1f}")


if __name__ == "__main__":
    main()
