"""vLLM as a reranker: its scores are those of transformers, on a cross-encoder that the test makes."""

import json
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import UnaryCallFailed

pytestmark = pytest.mark.slow

QUERY = "what is gold?"
TEXTS = ["gold is a metal.", "paris", "what is gold?", "a b c d e f g h i j k l m n o p", "iron"] * 4
MADE_S = 300.0


@pytest.fixture(scope="module")
def reference(vllm_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The model's folder, and what transformers make of each pair."""
    folder = tmp_path_factory.mktemp("models") / "cross-encoder"
    pairs = json.dumps([[QUERY, text] for text in TEXTS])
    command = [vllm_python, str(Path(__file__).with_name("cross_encoder.py")), str(folder), pairs]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MADE_S)
    assert done.returncode == 0, done.stderr[-2000:]
    return {"folder": str(folder), **json.loads(done.stdout.splitlines()[-1])}


@pytest.fixture(scope="module")
def host(start_vllm: Callable[..., Any], reference: dict[str, Any]) -> Generator[Any, None, None]:
    arguments = {"enforce_eager": True, "embeddings": True, "pooler_config": {"use_activation": True}}
    host = start_vllm(model_path=reference["folder"], engine_args=arguments, context_tokens=128)
    yield host
    host.end()


async def test_scores_are_those_of_transformers_and_what_it_cannot_do_is_said(
    host: Any, reference: dict[str, Any], ask: Any
) -> None:
    client = await host.open()

    made = await client.unary.rerank(QUERY, TEXTS)

    assert len(TEXTS) == len(made.scores)
    assert reference["scores"] == pytest.approx(list(made.scores), abs=1e-4)
    assert reference["blind"] != pytest.approx(reference["scores"], abs=1e-2), "the model must tell query from text"
    assert sum(reference["tokens"]) == made.prompt_tokens
    assert (await client.unary.rerank(QUERY, TEXTS[:1])).scores[0] == pytest.approx(made.scores[0], abs=1e-5)

    with pytest.raises(
        UnaryCallFailed, match=r"text 1 have .* tokens together, this model takes at most 128"
    ) as refused:
        await client.unary.rerank(QUERY, ["fine", "word " * 90])
    assert pb.FAULT_CONTEXT_EXCEEDED == refused.value.fault
    with pytest.raises(UnaryCallFailed, match="makes no embeddings"):
        await client.unary.embed(["a"])
    assert pb.FAULT_BAD_REQUEST == (await ask(client, "write").end()).fault
    await client.close()
