"""What a session costs over vLLM on the processor: `AsyncLLM` in a process, and the engine host with a session client.

    PYTHON libs/engine/bench/vllm_streams.py MODEL [--streams 1 8 32] [--tokens 200] [--rounds 3] [--threads 1]

PYTHON is that of an environment with vLLM and weft-engine (`weft_testing.vllm_environment` makes one), MODEL a folder
with safetensors. Both ways run the same prompts, greedily, past the model's end, so many tokens each; both engines
stay up and are asked in turns, because other work on the machine slows both. That moves throughput; the CPU time a
token of either's first process it moves much less, and vLLM's processes below it do the same in both ways. In the bare
way a task for each stream takes vLLM's outputs, its own text with them, and counts. The session's client, whose sinks
only count, is a process beside the host: on two cores it takes its share of them.
"""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient, make_hello
from weft_engine.adapters.vllm_loading import environment, plan_for
from weft_engine.adapters.vllm_settings import VllmSettings
from weft_engine.adapters.vllm_starting import configured
from weft_engine.launch import Launch
from weft_engine.vllm_child import bind_children

BARE = "--bare"
CONTEXT, CONCURRENCY = 512, 32


def launch_of(model: str, threads: int) -> dict[str, Any]:
    """What both ways are told."""
    return {
        "replica": "m-1",
        "incarnation": "i-1",
        "node": "n-1",
        "revision_digest": "d-1",
        "engine": "vllm",
        "model_path": model,
        "context_tokens": CONTEXT,
        "concurrency": CONCURRENCY,
        "threads": threads,
        "engine_args": {"dtype": "float32", "enforce_eager": True},
        "log_level": "error",
        "without_agent_s": 3600,
    }


def question(number: int) -> str:
    """A prompt of its own for each stream."""
    return f"what is the capital of country {number}?"


async def bare(model: str, threads: int) -> None:
    """The bare way, as a process that is told "streams tokens" by lines and answers with seconds."""
    launch = Launch.model_validate(launch_of(model, threads))
    os.environ.update(environment(launch))
    bind_children()
    arguments = plan_for(launch, VllmSettings.of(launch), Path(model)).arguments
    async_llm: Any = importlib.import_module("vllm.v1.engine.async_llm")
    sampling: Any = importlib.import_module("vllm.sampling_params")
    engine = async_llm.AsyncLLM.from_vllm_config(configured(arguments), disable_log_stats=True)
    made = 0

    async def stream(number: int, tokens: int) -> None:
        chat = [{"role": "user", "content": question(number)}]
        ids = engine.get_tokenizer().apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        delta = sampling.RequestOutputKind.DELTA
        params = sampling.SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, output_kind=delta)
        nonlocal made
        made += 1
        async for _ in engine.generate({"prompt_token_ids": ids}, params, f"r{made}"):
            pass

    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        streams, tokens = map(int, line.split())
        began = time.perf_counter()
        await asyncio.gather(*(stream(number, tokens) for number in range(streams)))
        print(time.perf_counter() - began, flush=True)
    engine.shutdown()


async def by_session(client: SessionClient, streams: int, tokens: int) -> float:
    """Seconds that all streams take."""
    left = streams
    done = asyncio.Event()

    def sink(output: pb.Output) -> None:
        nonlocal left
        if output.finish:
            assert output.finish == pb.FINISH_LENGTH, output
            left -= 1
            if left == 0:
                done.set()

    began = time.perf_counter()
    for number in range(streams):
        request = pb.Submit(max_tokens=tokens, sampling=pb.Sampling(temperature=0, ignore_end=True))
        request.chat.messages.add(role="user", content=question(number))
        client.submit(request, sink)
    await done.wait()
    return time.perf_counter() - began


@contextlib.contextmanager
def process(*words: str) -> Generator[subprocess.Popen[str]]:
    """A Python process that is spoken to by lines."""
    with subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process took so far, without those below it."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def said(started: subprocess.Popen[str]) -> str:
    """Its next line."""
    assert started.stdout is not None
    return started.stdout.readline()


async def measure(given: argparse.Namespace) -> None:
    """Both ways in turns; prints a line for each number of streams."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(launch_of(given.model, given.threads), file)
        file.flush()
        with (
            process(__file__, given.model, "--threads", str(given.threads), BARE) as native,
            process("-m", "weft_engine", "--launch", file.name) as host,
        ):
            while (phase := json.loads(said(host)))["phase"] != "ready":
                assert phase["phase"] != "failed", phase
            while "ready" not in said(native):
                assert native.poll() is None
            client = await SessionClient.open(f"127.0.0.1:{phase['port']}", make_hello("m-1", "i-1", "d-1", "bench"))
            assert native.stdin is not None
            for streams in given.streams:
                alone: list[float] = []
                hosted: list[float] = []
                alone_us: list[float] = []
                hosted_us: list[float] = []
                for turn in range(given.rounds + 1):
                    cpu = cpu_s(native.pid), cpu_s(host.pid)
                    native.stdin.write(f"{streams} {given.tokens}\n")
                    native.stdin.flush()
                    bare_s = float(said(native))
                    session_s = await by_session(client, streams, given.tokens)
                    if turn:  # the first warms up
                        alone.append(streams * given.tokens / bare_s)
                        hosted.append(streams * given.tokens / session_s)
                        alone_us.append((cpu_s(native.pid) - cpu[0]) / streams / given.tokens * 1e6)
                        hosted_us.append((cpu_s(host.pid) - cpu[1]) / streams / given.tokens * 1e6)
                lost = [1 - one / other for one, other in zip(hosted, alone, strict=True)]
                print(
                    f"{streams} streams: AsyncLLM {statistics.median(alone):.0f} tokens/s, "
                    f"session {statistics.median(hosted):.0f}, lost {statistics.median(lost):+.1%} "
                    f"({min(lost):+.1%} to {max(lost):+.1%}), CPU a token {statistics.median(alone_us):.0f} µs "
                    f"({min(alone_us):.0f} to {max(alone_us):.0f}) and {statistics.median(hosted_us):.0f} µs "
                    f"({min(hosted_us):.0f} to {max(hosted_us):.0f}), load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
            await client.close()


def main() -> None:
    """Be one of the ways, or measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(BARE, action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    asyncio.run(bare(given.model, given.threads) if given.bare else measure(given))


if __name__ == "__main__":
    main()
