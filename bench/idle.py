"""What an idle mesh takes: CPU of one core over a minute (goal: under 8 %), memory as PSS (goal: under 650 MB).

    python bench/idle.py [--seconds 60] [--workers 1] [--settle 20] [--backends 10]

A whole mesh with the built-in model ready, after one answered question. CPU is counted by the kernel, so others on
the machine move it little. `--backends`: so many lie in the workers' folder, installed and used by nobody. They are
made up: each is whole for its worker, with its own interpreter and profile, and a hundred files instead of an engine's
ten thousands, which a worker that is idle doesn't look at.
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from mesh_cpu import look
from weft_contracts.backends import BackendVariant
from weft_contracts.engines import ArgumentClaim, EngineProfile, Install
from weft_testing.engine_environment import interpreter
from weft_testing.story import MeshUnderTest
from weft_worker_agent.outbound.backends.environments import write_about

FILES = 100


def main() -> None:
    """Print a line for each part, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--settle", type=float, default=20, help="seconds between the first answer and the first look")
    parser.add_argument("--backends", type=int, default=0, help="that lie there, installed and unused")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        backends = Path(folder) / "backends"
        for number in range(given.backends):
            lay(backends, number)
        with MeshUnderTest(Path(folder), workers=given.workers, WEFT_INSTALL_FOLDER=str(backends)) as mesh:
            mesh.ask()
            node = mesh.http.get(f"{mesh.url}/api/nodes/worker-1").json()
            seen = [each["engine"] for each in node["backends"] if each["engine"].startswith("made-up-")]
            assert given.backends == len(seen), f"the worker reports {seen}"
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
    print(f"{wall:.0f} s, {given.workers} worker(s), {given.backends} backends, load average {os.getloadavg()[0]:.1f}")
    print(f"{'part':<28}{'processes':>10}{'% of one core':>15}{'PSS, MB':>10}")
    for part in sorted(pss, key=lambda each: -pss[each]):
        print(f"{part:<28}{count[part]:>10}{100 * cpu[part] / wall:>15.2f}{pss[part] / 1e6:>10.1f}")
    print(f"{'all':<28}{count.total():>10}{100 * cpu.total() / wall:>15.2f}{pss.total() / 1e6:>10.1f}")


def lay(folder: Path, number: int) -> None:
    """An environment as an install leaves it, of an engine that Weft doesn't come with."""
    engine = f"made-up-{number}"
    profile = EngineProfile(
        name=engine,
        serves=("chat",),
        vendors=("cpu",),
        claim=ArgumentClaim(argument="memory_bytes", default=128 << 20),
        install=Install(package=engine, adapter="made_up.engine:engine"),
    )
    variant = BackendVariant(vendor="cpu", package=engine, version="1.0", requirements=(f"{engine}==1.0",), disk=0)
    environment = folder / f"{engine}-1.0-cpu-{number:016x}"
    site = environment / "lib" / "site-packages"
    site.mkdir(parents=True)
    for file in range(FILES):
        (site / f"module_{file}.py").write_text(f"NUMBER = {file}\n")
    interpreter(environment / "made", site, engine).joinpath(engine, "bin").rename(environment / "bin")
    write_about(environment, engine, variant, profile)


if __name__ == "__main__":
    main()
