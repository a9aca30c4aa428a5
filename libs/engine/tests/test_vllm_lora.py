"""vLLM applies a LoRA adapter to all that it answers, as llama.cpp does the same one."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import weft_tiny
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import LoadFailed
from weft_engine.adapters.vllm_lora import lora_of
from weft_engine.launch import Launch
from weft_testing.gguf_files import write_lora
from weft_testing.peft_files import write_peft

StartHost = Callable[..., AbstractAsyncContextManager[Any]]
Ask = Callable[..., Any]
GREEDY = pb.Sampling(temperature=0)
RANK, ALPHA = 4, 8.0


def as_peft(lora: Path, folder: Path) -> Path:
    """The same adapter as peft writes it; of the projections whose rows lie in one order in both formats."""
    reader: Any = gguf.GGUFReader(lora)
    tensors: dict[str, Any] = {}
    for tensor in reader.tensors:
        block, _, side = tensor.name.removeprefix("blk.").partition(".attn_v.weight.lora_")
        name = f"base_model.model.model.layers.{block}.self_attn.v_proj.lora_{side.upper()}.weight"
        tensors[name] = np.array(tensor.data)
    return write_peft(folder, tensors, rank=RANK, alpha=ALPHA)


def launch(*adapters: dict[str, Any]) -> Launch:
    body = {"replica": "m-1", "incarnation": "i-1", "node": "n-1", "revision_digest": "d", "engine": "vllm"}
    return Launch.model_validate({**body, "context_tokens": 64, "concurrency": 1, "adapters": adapters})


@pytest.mark.slow
async def test_the_same_adapter_says_the_same_in_both_engines(
    start_vllm: Callable[..., Any], start: StartHost, ask: Ask, tmp_path: Path
) -> None:
    lora = write_lora(tmp_path / "lora.gguf", weft_tiny.gguf_path(), rank=RANK, alpha=ALPHA, names=("attn_v.weight",))
    folder = as_peft(lora, tmp_path / "lora")
    asked = [f"What is the capital of {country}?" for country in ("France", "Peru", "Japan", "Kenya")]

    async def told(host: Any) -> list[str]:
        client = await host.open()
        answers = [ask(client, words, max_tokens=24, sampling=GREEDY) for words in asked]
        for answer in answers:
            assert (await answer.end()).finish in (pb.FINISH_STOP, pb.FINISH_LENGTH)
        await client.close()
        return [answer.text for answer in answers]

    by_scale: dict[float, list[str]] = {}
    for scale in (0.0, 1.0):
        adapters = [{"name": "odd", "path": str(lora), "scale": scale}]
        async with start(engine="llama.cpp", model_path=str(weft_tiny.gguf_path()), adapters=adapters) as host:
            await host.phase("ready")
            by_scale[scale] = await told(host)
    host = start_vllm(
        model_path=str(weft_tiny.folder()),
        engine_args={"dtype": "float32", "enforce_eager": True},
        context_tokens=512,
        adapters=[{"name": "odd", "path": str(folder)}],
    )
    try:
        assert by_scale[1.0] == await told(host)
    finally:
        host.end()
    assert by_scale[0.0] != by_scale[1.0]


def test_vllm_makes_room_for_an_adapters_rank(tmp_path: Path) -> None:
    tensors = {"model.layers.0.self_attn.v_proj.lora_A.weight": np.zeros((12, 8), np.float32)}
    folder = write_peft(tmp_path / "lora", tensors, rank=12)

    lora = lora_of(launch({"name": "odd", "path": str(folder)}))

    assert lora is not None
    assert ("odd", 16, True) == (lora.name, lora.room, lora.bytes > 12 * 8 * 4)
    assert 16 == lora.arguments["max_lora_rank"]
    assert lora_of(launch()) is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scale": 0.5}, "the LoRA adapter odd has the scale 0.5: vLLM applies adapters as they are"),
        ({"path": "/nowhere"}, "the LoRA adapter odd is not there: /nowhere/adapter_config.json does not exist"),
        ({"rank": 1000}, "the LoRA adapter odd has the rank 1000: vLLM takes 1 to 512"),
    ],
)
def test_an_adapter_that_vllm_can_not_apply_is_refused(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    folder = write_peft(tmp_path / "lora", {"x": np.zeros((1, 1), np.float32)}, rank=int(change.pop("rank", 2)))
    with pytest.raises(LoadFailed) as refused:
        lora_of(launch({"name": "odd", "path": str(folder), **change}))
    assert (True, sentence) == (refused.value.permanent, str(refused.value))
