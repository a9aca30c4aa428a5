"""What a start pays for imports: CPU seconds in user mode, and modules, of each service, of the launcher, of commands.

    python bench/imports.py [--runs 7] [--top NAME]

Each run is a process of its own that imports one module, with all bytecode there. Wall time would be that of the
machine's other work. `--top`: of one of them, the packages whose own modules take longest (the least of all runs each).
"""

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from statistics import median

STARTS = {
    "scheduler": "weft_scheduler.app",
    "reconciler": "weft_reconciler.app",
    "registry": "weft_registry.app",
    "metadata-cache": "weft_metadata_cache.app",
    "gateway": "weft_gateway.app",
    "worker: agent": "weft_worker_agent.app",
    "worker: supervisor": "weft_worker_agent.outbound.supervisor.supervisor",
    "engine host": "weft_engine.host",
    "launcher": "weft_embedded.up",
    "weft --help": "weft_cli.main",
    "weft status": "weft_cli.main, weft_cli.commands.status",
    "weft deploy": "weft_cli.main, weft_cli.commands.models",
}
_ONE = """
import resource, sys
before, had = resource.getrusage(resource.RUSAGE_SELF).ru_utime, len(sys.modules)
import {}
print(resource.getrusage(resource.RUSAGE_SELF).ru_utime - before, len(sys.modules) - had)
"""
_LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
_SHOWN = 20


def main() -> None:
    """Print a line for each start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--top", choices=STARTS, metavar="NAME", help=", ".join(STARTS))
    given = parser.parse_args()
    if given.top is not None:
        tops(STARTS[given.top], given.runs)
        return
    print(f"{given.runs} runs each, load average {os.getloadavg()[0]:.1f}")
    print(f"{'start':<20}{'CPU s, median':>15}{'least':>8}{'modules':>10}")
    for name, module in STARTS.items():
        found = [_python("-c", _ONE.format(module)).stdout.split() for _ in range(given.runs + 1)][1:]  # one compiles
        seconds = [float(each[0]) for each in found]
        print(f"{name:<20}{median(seconds):>15.2f}{min(seconds):>8.2f}{found[0][1]:>10}")


def tops(module: str, runs: int) -> None:
    """Print the packages whose own modules take longest."""
    least: dict[str, int] = {}
    for _ in range(runs):
        for micros, name in _LINE.findall(_python("-X", "importtime", "-c", f"import {module}").stderr):
            least[name] = min(least.get(name, int(micros)), int(micros))
    packages = Counter[str]()
    for name, micros in least.items():
        packages[name.partition(".")[0]] += micros
    for name, micros in packages.most_common(_SHOWN):
        print(f"{name:<28}{micros / 1000:>8.1f} ms")


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    main()
