"""What a streamed token costs in CPU time: llama.cpp bare in a process, and the engine host with a session client.

    python libs/engine/bench/cost_of_a_token.py MODEL.gguf [STREAMS] [TOKENS] [ROUNDS]

The bare call is llama.cpp's own server in this process, one thread for each stream, with a callback that only
counts. The host is `python -m weft_engine`; the client is a SessionClient whose sinks only count. Both are measured
by their own CPU time in processes of their own, in turns, because other work on the machine slows both.
"""

import asyncio
import importlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient, make_hello

CONTEXT = 1024
BARE = "--bare"


def cpu_s(who: int = resource.RUSAGE_SELF) -> float:
    """CPU seconds so far, user and system."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU for each token."""

    engine: float
    client: float = 0.0


def bare(model: str, streams: int, tokens: int) -> Cost:
    """The bare in-process call."""
    native: Any = importlib.import_module("xllamacpp")
    params = native.CommonParams()
    params.model.path = model
    params.n_ctx = CONTEXT * streams
    params.n_parallel = streams
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    params.cache_ram_mib = 0
    params.api_keys = ["bench"]
    server = native.Server(params)
    counted = 0

    def run(number: int, limit: int) -> None:
        def count(chunk: str) -> bool:
            nonlocal counted
            counted += 1
            return False

        prompt = f"<|im_start|>user\nhello {number}<|im_end|>\n<|im_start|>assistant\n"
        request = {"prompt": prompt, "stream": True, "temperature": 0, "max_tokens": limit, "ignore_eos": True}
        server.handle_completions(json.dumps(request), count)

    def run_all(limit: int) -> None:
        threads = [threading.Thread(target=run, args=(i, limit)) for i in range(streams)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run_all(4)
    before = cpu_s()
    run_all(tokens)
    return Cost((cpu_s() - before) / (streams * tokens) * 1e6)


def host_cpu_s(pid: int) -> float:
    """CPU seconds of another process; its resolution is a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def hosted(model: str, streams: int, tokens: int) -> Cost:
    """The engine host and a session client."""
    launch = {
        "replica": "m-1",
        "incarnation": "i-1",
        "node": "n-1",
        "revision_digest": "d-1",
        "engine": "llama.cpp",
        "model_path": model,
        "context_tokens": CONTEXT,
        "concurrency": streams,
        "log_level": "error",
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(launch, file)
        file.flush()
        host = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "weft_engine", "--launch", file.name, stdout=asyncio.subprocess.PIPE
        )
        assert host.stdout is not None
        port = 0
        while line := await host.stdout.readline():
            said = json.loads(line)
            port = said.get("port", port)
            if said["phase"] in ("ready", "failed"):
                break
    client = await SessionClient.open(f"127.0.0.1:{port}", make_hello("m-1", "i-1", "d-1", "bench"))

    async def run_all(limit: int) -> None:
        left = streams
        done = asyncio.Event()

        def sink(output: pb.Output) -> None:
            nonlocal left
            if output.finish:
                left -= 1
                if left == 0:
                    done.set()

        for number in range(streams):
            request = pb.Submit(max_tokens=limit, sampling=pb.Sampling(temperature=0, ignore_end=True))
            request.chat.messages.add(role="user", content=f"hello {number}")
            client.submit(request, sink)
        await done.wait()

    await run_all(4)
    mine, its = cpu_s(), host_cpu_s(host.pid)
    await run_all(tokens)
    made = streams * tokens / 1e6
    cost = Cost((host_cpu_s(host.pid) - its) / made, (cpu_s() - mine) / made)
    await client.close()
    host.terminate()
    await host.wait()
    return cost


def main() -> None:
    """Measure in turns and print the medians."""
    arguments = [word for word in sys.argv[1:] if word != BARE]
    model = arguments[0]
    streams, tokens, rounds = (int(word) for word in (*arguments[1:4], *("32", "600", "5")[len(arguments) - 1 :]))
    if BARE in sys.argv:
        print(bare(model, streams, tokens).engine)
        return
    bares: list[float] = []
    hosts: list[Cost] = []
    for _ in range(rounds):
        command = [sys.executable, __file__, *arguments, BARE]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
        bares.append(float(said.split()[-1]))
        hosts.append(asyncio.run(hosted(model, streams, tokens)))
    before = statistics.median(bares)
    engine = statistics.median(cost.engine for cost in hosts)
    client = statistics.median(cost.client for cost in hosts)
    print(f"{streams} streams of {tokens} tokens, median of {rounds}, µs of CPU per token:")
    print(f"bare in-process call {before:.1f}")
    print(f"host {engine:.1f} + client {client:.1f} = {engine + client:.1f}")
    print(f"difference {(engine + client) / before - 1:+.1%}")


if __name__ == "__main__":
    main()
