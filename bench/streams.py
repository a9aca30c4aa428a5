"""The mesh against the engine called in-process, at 1, 8 and 32 streams: CPU per token, tokens a second, first token.

    python bench/streams.py [--streams 1 8 32] [--seconds 8] [--rounds 3]

Goals: at 32 streams at most 5 % more CPU per token, and at most 3 ms more to the first token (median). Both sides
load the built-in model with the same settings and one engine thread, and take turns, so that the machine's other work
falls on both. The mesh's cost is that of its gateway and its engine host, by the kernel's count; the load comes from
another process (`load.py`). The engine alone is `in_process.py`: the goals are held against completions of a prompt
that was rendered beforehand, the least that it can be asked for. Beside it stands what the same chats cost there.
With `--spread` the answers differ in length, so that streams don't end and ask anew all at once.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import weft_tiny
from in_process import CONCURRENCY, CONTEXT
from mesh_cpu import between, cpu_of, tasks_of
from weft_testing.story import MeshUnderTest, until

HERE = Path(__file__).parent
MODEL = "bench"
GGUF = Path(weft_tiny.__file__).parent / "shipped" / "weft-tiny.gguf"
SPEC = {
    "source": {"kind": "builtin", "name": "tiny"},
    "engine": "llama.cpp",
    "context_tokens": CONTEXT,
    "concurrency": CONCURRENCY,
}
Figures = Mapping[str, float]


def child(script: str, *words: str) -> dict[str, Any]:
    """What a script prints as its last line. Raises CalledProcessError, TimeoutExpired."""
    ran = subprocess.run([sys.executable, str(HERE / script), *words], check=True, stdout=subprocess.PIPE, timeout=600)
    return json.loads(ran.stdout.splitlines()[-1])


def simulated(ms_per_token: float) -> dict[str, Any]:
    """A model whose tokens cost nothing but time."""
    return {
        "source": {"kind": "simulated"},
        "engine": "simulated",
        "concurrency": 256,
        "engine_args": {"ms_per_token": ms_per_token},
    }


def paced(doc: str | None, *, seconds: float, rounds: int) -> argparse.ArgumentParser:
    """The options of a bench whose streams get a token every so often."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--ms", type=float, default=10, help="between two tokens of a stream")
    parser.add_argument("--seconds", type=float, default=seconds, help="of each run")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def figures(found: Mapping[str, Any], gateway: float, engine: float) -> Figures:
    """Per token and per request, from sums."""
    return {
        "gateway": 1e6 * gateway / found["tokens"],
        "engine": 1e6 * engine / found["tokens"],
        "both": 1e6 * (gateway + engine) / found["tokens"],
        "rate": found["tokens"] / found["seconds"],
        "first": 1e3 * statistics.median(found["first"]),
    }


def through_mesh(mesh: MeshUnderTest, words: list[str]) -> Figures:
    gateway = psutil.Process(mesh.pid("gateway"))
    (host,) = mesh.hosts()
    before, tasks = (cpu_of(gateway), cpu_of(host)), tasks_of(host.pid)
    found = child("load.py", mesh.url, MODEL, *words)
    spent = between(host.pid, tasks, tasks_of(host.pid))
    return {
        **figures(found, cpu_of(gateway) - before[0], cpu_of(host) - before[1]),
        "model": 1e6 * spent.model / found["tokens"],
        "loop": 1e6 * spent.loop / found["tokens"],
        "others": 1e6 * spent.others / found["tokens"],
        "switches": spent.switches / found["tokens"],
    }


def alone(words: list[str]) -> Figures:
    found = child("in_process.py", str(GGUF), *words)
    return {**figures(found, 0.0, found["cpu"]), "switches": found["switches"] / found["tokens"]}


def median(rounds: list[Figures]) -> Figures:
    return {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}


def main() -> None:
    """Print a table: one line for each number of streams and side, and how they compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=8, help="of each run")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median is shown")
    parser.add_argument("--tokens", type=int, default=128, help="of each answer")
    parser.add_argument("--spread", action="store_true", help="answers of half to three halves as many tokens")
    given = parser.parse_args()
    print(f"{'streams':>7}  {'':<11}{'µs CPU a token':>15}{'gateway':>9}{'engine':>8}{'tokens/s':>10}{'first, ms':>11}")
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder, MeshUnderTest(Path(folder)) as mesh:
        mesh.weft("remove", "tiny")
        mesh.deploy(MODEL, SPEC).raise_for_status()
        until("the model answers", lambda: mesh.ready_replicas(MODEL), 60)
        until("no other engine runs", lambda: len(mesh.hosts()) == 1, 60)
        for streams in given.streams:
            words = ["--streams", str(streams), "--seconds", str(given.seconds), "--tokens", str(given.tokens)]
            words += ["--spread"] * given.spread
            chats = median([alone([*words, "--chat"])])
            pairs = [(alone(words), through_mesh(mesh, words)) for _ in range(given.rounds)]
            engine, weft = median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])
            for what, row in (("in-process", engine), ("its chats", chats), ("weft", weft)):
                print(
                    f"{streams:>7}  {what:<11}{row['both']:>15.1f}{row['gateway']:>9.1f}{row['engine']:>8.1f}"
                    f"{row['rate']:>10,.0f}{row['first']:>11.2f}"
                )
            print(
                f"{streams:>7}  host: llama.cpp's thread {weft['model']:.1f}, the loop {weft['loop']:.1f}, others "
                f"{weft['others']:.1f} µs; switches a token {weft['switches']:.2f}, in-process {engine['switches']:.2f}"
            )
            more = statistics.median(pair[1]["both"] / pair[0]["both"] for pair in pairs)
            later = statistics.median(pair[1]["first"] - pair[0]["first"] for pair in pairs)
            load = os.getloadavg()[0]
            print(
                f"{streams:>7}  CPU a token {100 * (more - 1):+.1f} %, first token {later:+.2f} ms, tokens/s "
                f"{100 * (weft['rate'] / engine['rate'] - 1):+.0f} %   load average {load:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
