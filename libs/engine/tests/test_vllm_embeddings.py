"""vLLM as an embedder: the built-in one, written as Hugging Face models are, beside llama.cpp on its own file."""

import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import SessionClient, UnaryCallFailed, unpacked

pytestmark = pytest.mark.slow

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
SHIPPED = Path(__file__).parents[3] / "models/tiny-embed/src/weft_tiny_embed/shipped"
NAMES = {
    "token_embd": "embeddings.word_embeddings",
    "position_embd": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
    "attn_q": "attention.self.query",
    "attn_k": "attention.self.key",
    "attn_v": "attention.self.value",
    "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm",
    "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense",
    "layer_output_norm": "output.LayerNorm",
}


def its_name(name: str) -> str:
    """What Hugging Face calls a tensor of a BERT in GGUF."""
    *block, part, kind = name.split(".")
    layer = f"encoder.layer.{block[1]}." if block else ""
    return f"{layer}{NAMES[part]}.{kind}"


@pytest.fixture(scope="module")
def host(
    start_vllm: Callable[..., Any], write_tensors: Any, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Any, None, None]:
    folder = tmp_path_factory.mktemp("models") / "embedder"
    (folder / "1_Pooling").mkdir(parents=True)
    read = gguf.GGUFReader(SHIPPED / "weft-tiny-embed.gguf")
    write_tensors(folder / "model.safetensors", {its_name(each.name): np.array(each.data) for each in read.tensors})
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": 2048,
        "type_vocab_size": 2,
        "max_position_embeddings": 1024,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
    }
    modules = {"": "models.Transformer", "1_Pooling": "models.Pooling", "2_Normalize": "models.Normalize"}
    written: dict[str, Any] = {
        "config.json": config,
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<|endoftext|>"},
        "1_Pooling/config.json": {"word_embedding_dimension": 128, "pooling_mode_mean_tokens": True},
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.{kind}"}
            for i, (path, kind) in enumerate(modules.items())
        ],
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "tokenizer.json").write_bytes((SHIPPED / "tokenizer.json").read_bytes())
    host = start_vllm(model_path=str(folder), engine_args={"enforce_eager": True})
    yield host
    host.end()


@pytest.fixture
async def client(host: Any) -> AsyncGenerator[SessionClient, None]:
    client = await host.open()
    yield client
    await client.close()


async def test_its_vectors_are_llama_cpp_s_alone_and_together(client: SessionClient, start: StartHost) -> None:
    texts = ["what is the capital of france?", "the capital of france is paris.", "gold", "x " * 100] * 20
    alone = [await client.unary.embed([text]) for text in texts[:4]]
    together = await client.unary.embed(texts)
    async with start(engine="llama.cpp", model_path=str(SHIPPED / "weft-tiny-embed.gguf")) as other:
        await other.phase("ready")
        one = await other.open()
        theirs = await one.unary.embed(texts)
        await one.close()

    assert theirs.prompt_tokens == together.prompt_tokens == 20 * sum(made.prompt_tokens for made in alone)
    for place, vector in enumerate(together.vectors):
        assert dot(vector, alone[place % 4].vectors[0]) > 0.99999
        assert dot(vector, theirs.vectors[place]) > 0.999
    assert abs(dot(together.vectors[0], together.vectors[0]) - 1) < 1e-5


async def test_an_embedder_says_what_it_cannot_do(client: SessionClient, ask: Any) -> None:
    with pytest.raises(UnaryCallFailed, match="takes at most 512") as refused:
        await client.unary.embed(["fine", "word " * 900])
    assert pb.FAULT_CONTEXT_EXCEEDED == refused.value.fault
    with pytest.raises(UnaryCallFailed, match="input 1 has the token id 2048"):
        await client.unary.embed(["a", [2048]])
    with pytest.raises(UnaryCallFailed, match="does not rerank"):
        await client.unary.rerank("q", ["a"])
    assert pb.FAULT_BAD_REQUEST == (await ask(client, "write").end()).fault
    assert 3 == (await client.unary.embed([[7, 8, 9]])).prompt_tokens


def dot(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(unpacked(one), unpacked(other), strict=True))
