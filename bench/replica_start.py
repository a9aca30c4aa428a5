"""What a replica's start costs over the engine's own: wall and CPU seconds until the first token is there.

    python bench/replica_start.py [--engines llama.cpp,vllm] [--rounds 5]

In turns, with the built-in model and its files and backend there: the engine alone in a fresh interpreter, by its own
API and with the arguments that the host gives it; the engine host; and a replica of a whole mesh, from the placement's
event to the one that says that it is ready. vLLM needs `PIP_FIND_LINKS`, as its tests do.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import weft_tiny
from weft_testing.story import MeshUnderTest, until
from weft_testing.vllm_environment import vllm_environment

TREE = Path(__file__).parents[1]
CONTEXT = 512
STARTS_S = 300.0
LLAMA = """
import json, sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = int(sys.argv[2])
params.n_parallel = 1
params.verbosity = 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
server.handle_completions(json.dumps({"prompt": "hello", "n_predict": 1}), lambda chunk: False)
print("first token", flush=True)
sys.stdin.read()
"""
VLLM = """
import asyncio, json, sys

async def main():
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.sampling_params import SamplingParams
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM
    config = AsyncEngineArgs(**json.loads(sys.argv[1])).create_engine_config(UsageContext.ENGINE_CONTEXT)
    if sys.argv[2:] == ["alike"]:
        config.parallel_config.distributed_executor_backend = "uni"
    engine = AsyncLLM.from_vllm_config(config, disable_log_stats=True)
    async for _ in engine.generate("hello", SamplingParams(max_tokens=1), "first"):
        pass
    print("first token", flush=True)
    sys.stdin.read()

if __name__ == "__main__":
    asyncio.run(main())
"""
Cost = tuple[float, float]
"""Wall and CPU seconds."""


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds of a process and all below it, those that ended included."""
    spent = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent += times.user + times.system + times.children_user + times.children_system
    return spent


def started(command: list[str], sign: str, log: Path, environment: dict[str, str]) -> Cost:
    """Run a command until a line that holds `sign`; then end it and all below it."""
    began = time.monotonic()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=dict(os.environ) | environment
        )
    assert process.stdout is not None
    seen = psutil.Process(process.pid)
    try:
        for line in process.stdout:
            if sign in line.decode(errors="replace"):
                return time.monotonic() - began, cpu_of(seen)
        raise AssertionError(f"{command[:3]} ended without {sign!r}: {log.read_text(errors='replace')[-2000:]}")
    finally:
        below = seen.children(recursive=True)
        process.kill()
        process.wait(30)
        for each in psutil.wait_procs(below, timeout=10)[1]:
            each.kill()


def launch_file(folder: Path, engine: str, model: Path) -> Path:
    """The host's orders."""
    path = folder / "launch.json"
    launch = {
        "replica": "m-1",
        "incarnation": "i-1",
        "node": "n-1",
        "revision_digest": "d-1",
        "engine": engine,
        "model_path": str(model),
        "context_tokens": CONTEXT,
        "concurrency": 1,
        "engine_args": {"enforce_eager": True} if engine == "vllm" else {},  # no C++ compiler is needed, then
        "without_agent_s": 2 * STARTS_S,
    }
    path.write_text(json.dumps(launch))
    return path


def vllm_arguments(log: Path) -> dict[str, Any]:
    """What the host told vLLM, by its own log."""
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("{") and '"starts vLLM"' in line:
            arguments: dict[str, Any] = json.loads(line)["arguments"]
            return arguments
    raise AssertionError("the host's log doesn't say how it started vLLM")


def alone_and_hosted(engine: str, python: str, model: Path, folder: Path, rounds: int) -> dict[str, list[Cost]]:
    """The engine alone, and its host, in turns; one of each before that fills the caches.

    vLLM alone is started as it does by itself, and with as few processes as its host gives it on a processor.
    """
    log, costs = folder / "log", dict[str, list[Cost]]()
    launch = launch_file(folder, engine, model)
    environment = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_HOST_IP": "127.0.0.1"}
    bare = folder / "bare.py"
    bare.write_text(VLLM if engine == "vllm" else LLAMA)
    for turn in range(rounds + 1):
        host = started([python, "-m", "weft_engine", "--launch", str(launch)], '"ready"', log, {})
        ways = {f"{engine} alone": [str(model), str(CONTEXT)]}
        if engine == "vllm":
            told = json.dumps(vllm_arguments(log))
            ways = {"vllm alone": [told], "vllm alone, alike": [told, "alike"]}
        made = {
            name: started([python, str(bare), *words], "first token", folder / "bare.log", environment)
            for name, words in ways.items()
        }
        for name, cost in (made | {f"{engine} in its host": host}).items():
            costs.setdefault(name, [])
            if turn:
                costs[name].append(cost)
    return costs


def in_a_mesh(rounds: int) -> list[float]:
    """Seconds from a replica's placement to its readiness, by the log's own times."""
    waits = list[float]()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder, MeshUnderTest(Path(folder)) as mesh:
        for turn in range(rounds + 1):
            after, name = mesh.status()["log"]["position"], f"again-{turn}"
            spec = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "llama.cpp", "context_tokens": CONTEXT}
            mesh.deploy(name, spec).raise_for_status()
            until("it serves", partial(mesh.ready_replicas, name), 60)
            times = {
                fact["type"]: float(event["at"])
                for event in mesh.events(after)
                for fact in event["facts"]
                if fact["type"] in ("assigned", "ready")
            }
            waits.append(times["ready"] - times["assigned"])
            mesh.http.delete(f"{mesh.url}/api/models/{name}").raise_for_status()
    return waits[1:]


def shown(name: str, costs: list[Cost]) -> str:
    """Medians, least and most."""
    walls, cpus = [wall for wall, _ in costs], [cpu for _, cpu in costs]
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    return f"{name:24}{wall:10.2f}{min(walls):9.2f}{max(walls):8.2f}{cpu:10.2f}{min(cpus):9.2f}{max(cpus):8.2f}"


def main() -> None:
    """Measure in turns and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="llama.cpp,vllm")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{'':24}{'wall, s':>10}{'least':>9}{'most':>8}{'CPU, s':>10}{'least':>9}{'most':>8}")
    for engine in given.engines.split(","):
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as name:
            folder, python, model = Path(name), sys.executable, weft_tiny.gguf_path()
            if engine == "vllm":
                python, model = str(vllm_environment(TREE, folder / "environment")), weft_tiny.folder()
            costs = alone_and_hosted(engine, python, model, folder, given.rounds)
        for name, taken in costs.items():
            print(shown(name, taken), flush=True)
        if engine == "llama.cpp":
            waits = in_a_mesh(given.rounds)
            print(f"{'llama.cpp in a mesh':24}{statistics.median(waits):10.2f}{min(waits):9.2f}{max(waits):8.2f}")
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
