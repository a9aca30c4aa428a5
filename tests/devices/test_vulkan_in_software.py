"""llama.cpp built with Vulkan on the node, on a device that is made in software (Mesa's lavapipe); see README.md."""

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_contracts.backends import builtin_recipes
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient, make_hello
from weft_engine.adapters.vulkan_loader import devices_of_loader
from weft_worker_agent.outbound.backends.environments import InstalledBackend
from weft_worker_agent.outbound.backends.installer import Installer, Interpreter
from weft_worker_agent.outbound.backends.sources import PackageSources

READY_S = 600.0
"""The first use of a device compiles its shaders."""
FOLDER = Path(tempfile.gettempdir()) / f"weft-test-engines-{os.getuid()}" / "vulkan"
"""What is built here takes half an hour and more: it is kept for the next time."""
FACTS = json.loads((weft_tiny.folder() / "facts.json").read_text())["questions"]
PROMPTS = [f"What is the capital of {each['country']}?" for each in FACTS[:50]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def backend() -> tuple[InstalledBackend, Interpreter]:
    """What the catalogue's recipe for AMD's devices makes on this machine, by the worker's own installer."""
    (variant,) = (each for each in builtin_recipes()["llama.cpp"].variants if each.vendor == "amd")

    async def made() -> tuple[InstalledBackend, Interpreter]:
        installer = Installer(FOLDER, PackageSources(), silence_s=900, at_once=1, jobs=1)
        try:
            found = await installer.want("llama.cpp", variant)
            return found, await installer.interpreter(found)
        finally:
            await installer.close()

    return asyncio.run(made())


@pytest.fixture(scope="module")
def device() -> dict[str, Any]:
    """The software device, as a claim that names it by its UUID; what else Vulkan has here is not used."""
    seen = next(each for each in devices_of_loader() if "llvmpipe" in each.name)
    return {"vendor": "amd", "number": 7, "uuid": seen.uuid, "bytes": 1 << 30}


class Said:
    """One whole answer."""

    def __init__(self) -> None:
        self.text = ""
        self.ended = asyncio.Event()

    def __call__(self, output: pb.Output) -> None:
        self.text += output.text
        if output.finish:
            self.ended.set()


@asynccontextmanager
async def a_host(folder: Path, how: Interpreter, **changes: Any) -> AsyncGenerator[tuple[dict[str, Any], Path, int]]:
    """An engine host of the built-in model: what it said last, and its log."""
    launch = {
        "replica": "m-1",
        "incarnation": "i-1",
        "node": "n-1",
        "revision_digest": "d-1",
        "engine": "llama.cpp",
        "model_path": str(weft_tiny.gguf_path()),
        "context_tokens": 512,
        "concurrency": 2,
        "log_level": "debug",
        "without_agent_s": READY_S,
        **changes,
    }
    file, log = folder / "launch.json", folder / "host.log"
    file.write_text(json.dumps(launch))
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            how.python,
            *("-m", "weft_engine", "--launch", str(file)),
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={"PATH": os.environ["PATH"], **how.environment},
        )
    try:
        said: dict[str, Any] = {}
        assert process.stdout is not None
        async with asyncio.timeout(READY_S):
            while said.get("phase") not in ("ready", "failed"):
                line = await process.stdout.readline()
                assert line, log.read_text()[-2000:]
                said = json.loads(line)
        yield said, log, process.pid
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def answers(said: dict[str, Any]) -> list[str]:
    """Greedy answers of the host to all prompts, one after another."""
    client = await SessionClient.open(f"127.0.0.1:{said['port']}", make_hello("m-1", "i-1", "d-1", "g"), timeout=30)
    found: list[str] = []
    for prompt in PROMPTS:
        answer, request = Said(), pb.Submit(max_tokens=40, sampling=pb.Sampling(temperature=0))
        request.chat.messages.add(role="user", content=prompt)
        client.submit(request, answer)
        async with asyncio.timeout(120):
            await answer.ended.wait()
        found.append(answer.text)
    await client.close()
    return found


@pytest.mark.parametrize(("layers", "offloaded"), [(0, None), (2, "2/4"), (None, "4/4")])
async def test_as_many_layers_as_are_asked_for_are_on_the_claimed_device_and_greedy_answers_are_the_processors(
    backend: tuple[InstalledBackend, Interpreter],
    device: dict[str, Any],
    tmp_path: Path,
    layers: int | None,
    offloaded: str | None,
) -> None:
    # given the answers of what comes with Weft, on the processor
    here = Interpreter(sys.executable, {})
    async with a_host(tmp_path, here, devices=[{"vendor": "cpu", "bytes": 1 << 30}]) as (said, _, _):
        expected = await answers(said)
    assert any("Paris" in answer for answer in expected)
    # when what was built serves the same with this claim
    arguments = {} if layers is None else {"gpu_layers": layers}
    async with a_host(tmp_path, backend[1], devices=[device], engine_args=arguments) as (said, log, _):
        assert "ready" == said["phase"], said
        found = await answers(said)
        words = log.read_text(errors="replace")
    # then the host sees the claimed device alone, and llama.cpp says how many layers lie there
    (visible,) = (json.loads(line) for line in words.splitlines() if '"event": "vulkan"' in line)
    assert "llvmpipe" in visible["devices"][int(visible["visible"])]
    told = re.findall(r"offloaded (\d+/\d+) layers to GPU", words)
    assert ([offloaded] if offloaded is not None else ["0/4"]) == told[:1]
    assert expected == found


async def test_a_claimed_device_that_vulkan_does_not_know_is_refused(
    backend: tuple[InstalledBackend, Interpreter], device: dict[str, Any], tmp_path: Path
) -> None:
    other = {**device, "uuid": "35ff74a1-0000-1000-80ac-0d5e9f1b7a42"}
    async with a_host(tmp_path, backend[1], devices=[other]) as (said, _, _):
        assert ("failed", True) == (said["phase"], said["permanent"])
    assert "is none of Vulkan's, which are: llvmpipe" in said["reason"]


async def test_a_claim_of_the_processor_alone_hides_all_of_vulkans_devices(
    backend: tuple[InstalledBackend, Interpreter], tmp_path: Path
) -> None:
    async with a_host(tmp_path, backend[1], devices=[{"vendor": "cpu", "bytes": 1 << 30}]) as (said, log, _):
        assert "ready" == said["phase"], said
    assert '"visible": ""' in log.read_text(errors="replace")
