"""A whole worker runs a model that was sent to it, and none that isn't what its sender told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import weft_tiny
from blake3 import blake3
from weft_contracts.digest import files_digest
from weft_contracts.facts import machine, run
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.source import SourceFile, UploadSource
from weft_contracts.facts.values import Weights
from weft_contracts.topology import worker_durable
from weft_eventlog import apply_durable
from weft_gguf.header import read_header
from weft_gguf.weights import weights_of_header
from weft_testing.mesh_server import MeshServer

from .test_agent_mesh import TOKEN, FakeGateway, Worker

BODY = weft_tiny.gguf_path().read_bytes()
WEIGHTS = weights_of_header(read_header(weft_tiny.gguf_path()))


@pytest.fixture
async def worker(mesh_server: MeshServer, tmp_path: Path, process_env: dict[str, str]) -> AsyncIterator[Worker]:
    """A worker; killed at the end."""
    gateway = FakeGateway(mesh_server)
    state = tmp_path / "worker"
    state.mkdir(mode=0o700)
    env = process_env | {
        "WEFT_STATE": str(state),
        "WEFT_GATEWAY_URL": gateway.url,
        "WEFT_JOIN_TOKEN": TOKEN,
        "WEFT_STOP_TIMEOUT": "5",
        "WEFT_DEVICES": "none",
    }
    worker = Worker(state, env, await mesh_server.root())
    await apply_durable(worker.root, worker_durable(worker.node))
    worker.start()
    yield worker
    worker.kill()
    gateway.close()


async def send(worker: Worker, fact: Assigned, body: bytes) -> None:
    """As a gateway does, once the log says that the files are waited for."""
    await worker.until(lambda said: any(isinstance(each, run.Fetching) for each in said))
    size = len(body)
    port = (worker.state / "http_port").read_text()
    url = f"http://127.0.0.1:{port}/uploads/{files_digest(fact.spec)}/{fact.spec.files[0].name}"
    async with httpx.AsyncClient(timeout=60) as client:
        for at in range(0, size, 1_000_000):
            part = body[at : at + 1_000_000]
            said = f"bytes {at}-{at + len(part) - 1}/{size}"
            answer = await client.put(url, content=part, headers={"content-range": said})
            for _ in range(100):  # the log may say so a moment before the file is waited for
                if answer.status_code != 503:
                    break
                await asyncio.sleep(0.1)
                answer = await client.put(url, content=part, headers={"content-range": said})
            assert (200 if at + len(part) == size else 308) == answer.status_code, answer.text


def spec_of(body: bytes, weights: Weights) -> dict[str, Any]:
    checksum = f"blake3:{blake3(body).hexdigest()}"
    files = (SourceFile(name="mine.gguf", size=len(body), checksum=checksum),)
    return {
        "engine": "llama.cpp",
        "source": UploadSource(name="mine.gguf"),
        "files": files,
        "weights": weights,
    }


@pytest.mark.slow
async def test_a_model_that_was_sent_runs_and_the_log_tells_how_it_came(
    worker: Worker, assigned: Callable[..., Assigned]
) -> None:
    fact = assigned(at=worker.node, **spec_of(BODY, WEIGHTS))
    await worker.assign(fact)
    await send(worker, fact, BODY)
    said = await worker.until(lambda said: any(isinstance(each, run.Ready) for each in said), timeout=120)
    assert run.Fetching(epoch=1, bytes=len(BODY)) in said
    assert ["fetching", "loading", "ready"] == [each.type for each in said if each.kind == "run"]
    came = machine.FilesCame(files=files_digest(fact.spec), bytes=len(BODY))
    await worker.until(lambda said: came in said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "weights", "why"),
    [
        (BODY, WEIGHTS.model_copy(update={"weight_bytes": 1}), "mine.gguf is not what was told before it was sent"),
        (b"no model at all" * 9, WEIGHTS, "mine.gguf was sent, and can't be used"),
    ],
)
async def test_what_is_not_what_its_sender_told_fails_for_good(
    worker: Worker, assigned: Callable[..., Assigned], body: bytes, weights: Weights, why: str
) -> None:
    fact = assigned(at=worker.node, **spec_of(body, weights))
    await worker.assign(fact)
    await send(worker, fact, body)
    said = await worker.until(lambda said: any(isinstance(each, run.Failed) for each in said), timeout=60)
    failed = next(each for each in said if isinstance(each, run.Failed))
    assert (True, True, 1) == (failed.permanent, why in failed.reason, failed.starts), failed
