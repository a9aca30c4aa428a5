"""Tiny models that engines run, and engine hosts that run them."""

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient
from weft_testing.made_models import (
    Weights,
    write_random_folder,
    write_random_model,
    write_reciting_model,
    write_safetensors,
)
from weft_testing.vllm_environment import vllm_environment

from .engine_hosts import HostProcess, VllmHost, started


@pytest.fixture(scope="session")
def write_tensors() -> Callable[[Path, dict[str, Weights]], None]:
    """Writes a file of safetensors."""
    return write_safetensors


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file made once for all tests."""
    return write_random_model(tmp_path_factory.mktemp("models") / "random.gguf")


RECITED = "é€𝄞a"
"""Characters of two, three, four tokens and one."""


@pytest.fixture(scope="session")
def reciting_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that recites `RECITED`."""
    return write_reciting_model(tmp_path_factory.mktemp("models") / "reciting.gguf", RECITED)


@pytest.fixture(scope="session")
def vllm_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with vLLM and this tree's engine host."""
    return str(vllm_environment(Path(__file__).parents[3], tmp_path_factory.mktemp("vllm") / "env"))


@pytest.fixture(scope="session")
def start_vllm(vllm_python: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., VllmHost]:
    """Start hosts with vLLM, with changed launches; `end` is the caller's."""
    folder = tmp_path_factory.mktemp("vllm-hosts")

    def start_host(**changes: object) -> VllmHost:
        return VllmHost(vllm_python, folder, **changes)

    return start_host


@pytest.fixture(scope="session")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, as `random_model` are, in a folder with safetensors."""
    return write_random_folder(tmp_path_factory.mktemp("models") / "random")


@pytest.fixture(scope="session")
def random_vllm(start_vllm: Callable[..., VllmHost], random_folder: Path) -> Generator[VllmHost, None, None]:
    """A host that runs random weights from a folder."""
    arguments = {"enforce_eager": True, "block_size": 32}  # its files name no type: it is computed in float32
    host = start_vllm(model_path=str(random_folder), engine_args=arguments, max_waiting=20)
    yield host
    host.end()


StartHost = Callable[..., AbstractAsyncContextManager[HostProcess]]


@pytest.fixture
def start(tmp_path: Path) -> StartHost:
    """Start hosts with changed launches."""

    def start_host(python: str = sys.executable, **changes: object) -> AbstractAsyncContextManager[HostProcess]:
        return started(tmp_path, python, **changes)

    return start_host


class Answer:
    """A sink that keeps one request's answer."""

    def __init__(self) -> None:
        self.number = 0
        self.outputs: list[pb.Output] = []
        self.first = asyncio.Event()
        self._ended = asyncio.Event()

    def __call__(self, output: pb.Output) -> None:
        self.outputs.append(output)
        self.first.set()
        if output.finish:
            self._ended.set()

    @property
    def text(self) -> str:
        return "".join(output.text for output in self.outputs)

    @property
    def ids(self) -> list[int]:
        return [i for output in self.outputs for i in output.token_ids]

    async def end(self) -> pb.Output:
        """The last output."""
        await asyncio.wait_for(self._ended.wait(), 30)
        return self.outputs[-1]


@pytest.fixture
def ask() -> Callable[..., Answer]:
    """Submit a chat or text and keep its answer."""

    def submit(client: SessionClient, words: str, **fields: Any) -> Answer:
        answer = Answer()
        request = pb.Submit(**fields)
        if words:
            request.chat.messages.add(role="user", content=words)
        answer.number = client.submit(request, answer)
        return answer

    return submit
