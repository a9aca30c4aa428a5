"""What a replica claims of an NVIDIA device beside what its engine was seen to hold of it.

    python bench/device_claims.py [--only WORDS]

Needs a device, and llama.cpp built for it in this Python's environment, as the catalogue's recipe builds it. First the
devices as Weft finds them. Then the answers of the built-in model, greedily, with none, some and all of its layers on
the first device; they must be the same. Then the models of `claims.py`: each is loaded by an engine host within its
claim on that device, answers one request that fills a step, and the driver is asked what the host's process holds;
its private memory (USS) stands beside that. One is ended by SIGKILL: what it held must be free again.
"""

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import weft_tiny
from claims import CASES, LLAMA, PROMPT, Case, spec_of
from engine_host import hosted
from weft_contracts.engines import BUILTIN
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_placement.claim import need_of
from weft_worker_agent.domain.accelerators import Accelerator
from weft_worker_agent.outbound.machine.accelerators.nvidia import DeviceMemory, Nvml

MIB = 1 << 20
ANSWER_S = 120.0
COUNTRIES = [each["country"] for each in json.loads((weft_tiny.folder() / "facts.json").read_text())["questions"]][:50]


def claimed(device: Accelerator, bytes: int) -> dict[str, Any]:
    """A launch's device."""
    return {"vendor": "nvidia", "number": device.number, "uuid": device.uuid, "bytes": bytes}


async def answer(client: SessionClient, words: str, tokens: int) -> str:
    """One greedy answer."""
    ended, text = asyncio.Event(), list[str]()

    def take(output: pb.Output) -> None:
        text.append(output.text)
        if output.finish:
            ended.set()

    request = pb.Submit(max_tokens=tokens, sampling=pb.Sampling(temperature=0))
    request.chat.messages.add(role="user", content=words)
    client.submit(request, take)
    async with asyncio.timeout(ANSWER_S):
        await ended.wait()
    return "".join(text)


def launch_of(case: Case, path: Path, device: Mapping[str, Any]) -> dict[str, Any]:
    """What its host is told."""
    return {
        "engine": LLAMA,
        "model_path": str(path),
        "context_tokens": case.context,
        "concurrency": case.concurrency,
        "engine_args": dict(case.arguments),
        "devices": [device],
        "correlation_id": "bench",
        "without_agent_s": 3600,
    }


async def held(nvml: Nvml, uuid: str, pid: int) -> tuple[int | None, DeviceMemory]:
    """What a process holds of a device, as its driver tells, and the device."""
    (memory,) = (each for each in await nvml.memory() if each.uuid == uuid)
    return memory.processes.get(pid), memory


async def greedy(device: Accelerator) -> None:
    """The built-in model with layers here and there."""
    case = Case("tiny", lambda to: to, LLAMA, 512, 2)
    found: dict[str, list[str]] = {}
    for layers in ("processor", "0", "2", "all"):
        arguments = {"gpu_layers": int(layers)} if layers.isdigit() else {}
        claim = {"vendor": "cpu", "bytes": 1 << 30} if layers == "processor" else claimed(device, 1 << 30)
        launch = launch_of(replace(case, arguments=arguments), weft_tiny.gguf_path(), claim)
        async with hosted(launch) as (_, client):
            begun = time.monotonic()
            found[layers] = [await answer(client, f"What is the capital of {each}?", 40) for each in COUNTRIES]
            took = time.monotonic() - begun
        same = sum(a == b for a, b in zip(found[layers], found["processor"], strict=True))
        print(f"layers {layers}: {same} of {len(COUNTRIES)} answers as on the processor, {took:.1f} s", flush=True)
    print(f"first: {found['all'][0]!r}")


async def row(nvml: Nvml, device: Accelerator, case: Case, path: Path, *, kill: bool) -> str:
    """One line of the table."""
    need = need_of(spec_of(case, path), BUILTIN[LLAMA])
    claim = need.on_each("nvidia", 1)
    _, before = await held(nvml, device.uuid, 0)
    async with hosted(launch_of(case, path, claimed(device, claim))) as (pid, client):
        await answer(client, PROMPT, 8)
        used, memory = await held(nvml, device.uuid, pid)
        beside, seen = psutil.Process(pid).memory_full_info().uss, before.free - memory.free
        if kill:
            os.kill(pid, signal.SIGKILL)
    if kill:
        _, after = await held(nvml, device.uuid, 0)
        print(f"killed: {seen / MIB:.0f} MiB were held, {(before.free - after.free) / MIB:.0f} MiB are", flush=True)
    told = "not told" if used is None else f"{used / MIB:.0f}"
    figures = (
        *(case.title, f"{case.context:,} × {case.concurrency}", f"{need.weights / MIB:.0f}", f"{need.kv / MIB:.1f}"),
        *(f"{claim / MIB:.0f}", told, f"{seen / MIB:.0f}", f"{claim / seen:.2f}", f"{beside / MIB:.0f}"),
    )
    return f"| {' | '.join(figures)} |"


async def measured(only: str) -> None:
    """All of it."""
    nvml = Nvml()
    try:
        look = await nvml.look()
        for each in look.found:
            print(each)
        device = look.found[0]
        await greedy(device)
        headings = ("model", "context × requests", "weights", "cache", "claim", "process", "device", "claim ÷ device")
        print(f"| {' | '.join((*headings, 'host'))} |\n{'|---' * (len(headings) + 1)}|", flush=True)
        with tempfile.TemporaryDirectory() as name:
            for number, case in enumerate(each for each in CASES if each.engine == LLAMA and only in each.title):
                path = case.write(Path(name) / f"{number}.gguf")
                if case.draft is not None:
                    draft = case.draft(Path(name) / f"{number}-draft.gguf")
                    case = replace(case, arguments={**case.arguments, "draft_model": str(draft)})
                print(await row(nvml, device, case, path, kill=number == 1), flush=True)
                path.unlink()
    finally:
        await nvml.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    asyncio.run(measured(parser.parse_args().only))


if __name__ == "__main__":
    main()
