"""What an installation costs with an empty cache: time, CPU, and what it leaves on the disk.

    python bench/install.py [--dev]

Copies this tree, without its environment, to a temporary folder, and runs `./weft --version` there with a cache of
its own; then once more, when all is there. Both are removed at the end. How fast packages come depends on the index
that pip's settings name: CPU seconds hardly do.
"""

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOUND_S = 1200
_LEFT_BEHIND = shutil.ignore_patterns(".git", ".venv", ".weft", "__pycache__", ".*_cache", "*.egg-info")


def run(tree: Path, place: Path, *words: str) -> tuple[float, float]:
    """Wall and CPU seconds of `./weft` there. Raises CalledProcessError."""
    settings = {
        "WEFT_VENV": str(place / "venv"),
        "UV_CACHE_DIR": str(place / "cache"),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CACHE_DIR": str(place / "pip-cache"),
    }
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_") and k != "PYTHONPATH"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [str(tree / "weft"), *words], check=True, env=kept | settings, timeout=BOUND_S, stdout=subprocess.DEVNULL
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def size(*folders: Path) -> int:
    """Bytes that they take on the disk; a file with two names counts once."""
    seen: dict[tuple[int, int], int] = {}
    for folder in folders:
        for path in folder.rglob("*"):
            facts = path.lstat()
            seen[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(seen.values())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", action="store_true", help="what tests and checks need as well (runs `./weft lint -h`)")
    words = ("lint", "--help") if parser.parse_args().dev else ("--help",)
    with tempfile.TemporaryDirectory(prefix="weft-install-") as name:
        place = Path(name)
        tree = Path(shutil.copytree(ROOT, place / "tree", ignore=_LEFT_BEHIND))
        for what in ("first run, empty cache", "second run"):
            wall, cpu = run(tree, place, *words)
            print(
                f"{what:<28}{wall:>8.1f} s wall {cpu:>8.1f} s CPU   load average {os.getloadavg()[0]:.1f}", flush=True
            )
        print(f"{'environment':<28}{size(place / 'venv') / 1e6:>8.0f} MB")
        print(f"{'installer':<28}{size(tree / '.weft') / 1e6:>8.0f} MB")
        print(f"{'cache':<28}{size(place / 'cache') / 1e6:>8.0f} MB")
        both = size(place / "venv", tree / ".weft", place / "cache")
        print(f"{'all, links counted once':<28}{both / 1e6:>8.0f} MB")


if __name__ == "__main__":
    main()
