"""What an upgrade costs those who ask meanwhile: seconds to the first word of streams at a steady rate, while nothing
happens and while every part of a mesh is replaced by the next release, in turns on one mesh.

    python bench/upgrade.py --rounds 2 --per-second 4
    python bench/upgrade.py --before PATH     # from an earlier tree to this one, instead of to a made next release

The mesh is as compose has it: TLS, keys, two gateways, two workers; an engine that says a token each 30 ms. A round is
a calm while, and then the way there or back. In compose's way a part is ended and started; `doors` counts the streams
that had to ask the second gateway, `failed` those that came to nothing.
"""

import argparse
import os
import ssl
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft_testing import next_release
from weft_testing.founded_mesh import ORDER, FoundedMesh
from weft_testing.front_doors import FrontDoors, Stream
from weft_testing.story import until

SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 64,
    "engine_args": {"ms_per_token": 30},
    "min_replicas": 2,
    "max_replicas": 2,
    "strategy": "spread",
}
ASKED = {"model": "busy", "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 30}


def packages(tree: Path, folder: Path) -> Path:
    """A folder with all packages of a tree, as a PYTHONPATH takes it."""
    folder.mkdir()
    for own in (*tree.glob("libs/*/src/*"), *tree.glob("services/*/src/*")):
        if own.is_dir():
            (folder / own.name).symlink_to(own)
    return folder


def replace(mesh: FoundedMesh, service: str, tree: Path | None) -> None:
    if service == "worker":
        mesh.agent_anew("worker-1", tree)
        mesh.replace("worker-2", tree)
        return
    for part in mesh.parts:
        if part.startswith(service):
            mesh.replace(part, tree)


def line(name: str, streams: Sequence[Stream]) -> str:
    """One row of the table."""
    first = sorted(1000 * each.first_s for each in streams if each.trouble is None)
    at = statistics.quantiles(first, n=100) if len(first) > 1 else [0.0] * 99
    failed = sum(each.trouble is not None for each in streams)
    doors = sum(each.doors > 1 for each in streams)
    figures = f"{at[49]:7.0f} {at[98]:7.0f} {max(first, default=0):7.0f}"
    return f"{name:16} {len(streams):7} {figures} {doors:6} {failed:6}"


def main(rounds: int, per_second: float, calm_s: float, before: Path | None) -> None:
    """Print a table: calm, and each service's replacement, all rounds together."""
    with tempfile.TemporaryDirectory(prefix="weft-upgrade-") as name, FoundedMesh(Path(name)) as mesh:
        folder = Path(name)
        there: Path | None = next_release.make(folder / "next") if before is None else None
        back: Path | None = packages(before, folder / "before") if before is not None else None
        if back is not None:
            for service in ORDER:
                replace(mesh, service, back)
        mesh.deploy("busy", SPEC).raise_for_status()
        until("both serve", lambda: len(mesh.ready_replicas("busy")) == 2, 90)
        spans: dict[str, list[tuple[float, float]]] = {}
        trust = ssl.create_default_context(cafile=mesh.authority)
        doors = [mesh.url(gateway) for gateway in mesh.gateways]
        with FrontDoors(doors, ASKED, per_second=per_second, trust=trust, key=mesh.admin_key) as load:
            load.goes_on(8)
            for turn in range(rounds):
                began = time.monotonic()
                time.sleep(calm_s)
                spans.setdefault("calm", []).append((began, time.monotonic()))
                for service in ORDER if turn % 2 == 0 else reversed(ORDER):
                    began = time.monotonic()
                    replace(mesh, service, there if turn % 2 == 0 else back)
                    until("both serve", lambda: len(mesh.ready_replicas("busy")) == 2, 90)
                    spans.setdefault(service, []).append((began, time.monotonic()))
        print(f"load average {os.getloadavg()[0]:.1f}; ms to the first word")
        print(f"{'while':16} {'streams':>7} {'p50':>7} {'p99':>7} {'most':>7} {'doors':>6} {'failed':>6}")
        for what, parts in spans.items():
            print(line(what, [each for each in load.ended if any(a <= each.began < b for a, b in parts)]))
        upgrading = [span for what, parts in spans.items() if what != "calm" for span in parts]
        print(line("all of it", [each for each in load.ended if any(a <= each.began < b for a, b in upgrading)]))
        print(
            "seconds a part:", {what: round(sum(b - a for a, b in parts) / rounds, 1) for what, parts in spans.items()}
        )
        for trouble, times in load.troubles.most_common(5):
            print(f"{times} times: {trouble}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="the way there, the way back, …")
    parser.add_argument("--per-second", type=float, default=4)
    parser.add_argument("--calm", type=float, default=20, help="seconds in which nothing is replaced, each round")
    parser.add_argument("--before", type=Path, help="an earlier tree of this project")
    given = parser.parse_args()
    main(given.rounds, given.per_second, given.calm, given.before)
