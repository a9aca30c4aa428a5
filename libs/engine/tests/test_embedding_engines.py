"""Embeddings by each engine that makes them, over a real session with a real process."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import UnaryCallFailed, unpacked
from weft_testing.llamacpp_server import LlamaCppServer

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
SHIPPED = Path(__file__).parents[3] / "models/tiny-embed/src/weft_tiny_embed/shipped/weft-tiny-embed.gguf"
LAUNCHES: dict[str, dict[str, Any]] = {
    "simulated": {"engine": "simulated", "engine_args": {"embeddings": True, "dimensions": 32}},
    "llama.cpp": {"engine": "llama.cpp", "model_path": str(SHIPPED)},
    "openai": {"engine": "openai"},
}
FAR = 0.5


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaCppServer]:
    """llama.cpp's own server, which embeds."""
    with LlamaCppServer(str(SHIPPED), alias="embed", embeddings=True) as server:
        yield server


@pytest.fixture(params=sorted(LAUNCHES))
def launch(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Of each engine."""
    if request.param == "openai":
        asked = {"base_url": request.getfixturevalue("server").url, "model": "embed", "embeddings": True}
        return LAUNCHES["openai"] | {"engine_args": asked}
    return LAUNCHES[request.param]


async def test_vectors_are_equal_alone_and_together_and_tokens_are_counted(
    start: StartHost, launch: dict[str, Any]
) -> None:
    async with start(**launch) as host:
        await host.phase("ready")
        client = await host.open()
        texts = ["What is the capital of France?", "The capital of France is Paris.", "gold", "x " * 100] * 30
        alone = [await client.unary.embed([text]) for text in texts[:4]]
        together = await client.unary.embed(texts)

        assert 30 * sum(made.prompt_tokens for made in alone) == together.prompt_tokens
        for place, vector in enumerate(together.vectors):
            assert dot(vector, alone[place % 4].vectors[0]) > 0.99999
        assert abs(dot(together.vectors[0], together.vectors[0]) - 1) < 1e-5
        assert dot(together.vectors[0], together.vectors[2]) < FAR
        await client.close()


async def test_an_embedder_says_what_it_cannot_do(start: StartHost, launch: dict[str, Any], ask: Any) -> None:
    async with start(**launch) as host:
        await host.phase("ready")
        client = await host.open()
        with pytest.raises(UnaryCallFailed, match=r"takes at most 512|too large to process.*512") as refused:
            await client.unary.embed(["fine", "word " * 900])
        assert pb.FAULT_CONTEXT_EXCEEDED == refused.value.fault
        assert pb.FAULT_BAD_REQUEST == (await ask(client, "write").end()).fault
        assert 3 == (await client.unary.embed([[7, 8, 9]])).prompt_tokens
        await client.close()


async def test_a_token_id_that_the_model_has_not_is_refused(start: StartHost) -> None:
    async with start(**LAUNCHES["llama.cpp"]) as host:
        await host.phase("ready")
        client = await host.open()
        with pytest.raises(UnaryCallFailed, match="input 1 has the token id 2048") as refused:
            await client.unary.embed(["a", [2048]])
        assert pb.FAULT_BAD_REQUEST == refused.value.fault
        await client.close()


def dot(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(unpacked(one), unpacked(other), strict=True))
