"""LoRA adapters on a node's disk: what is found, and what is told of those that can't be used."""

import json
from pathlib import Path

import numpy as np
import pytest
import weft_tiny
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.lora import LoraAdapter
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import ModelSpec
from weft_testing.gguf_files import write_lora
from weft_testing.peft_files import write_peft
from weft_worker_agent.outbound.files.found import NotFound
from weft_worker_agent.outbound.files.model_files import look
from weft_worker_agent.outbound.processes.loras import Lora, loras_of


def missing(path: Path | str, engine: str = "llama.cpp") -> str:
    with pytest.raises(NotFound) as fault:
        look(f"lora:{path}", engine)
    return str(fault.value)


@pytest.fixture
def lora(tmp_path: Path) -> Path:
    return write_lora(tmp_path / "lora.gguf", weft_tiny.gguf_path(), rank=4)


def test_an_adapter_is_found_with_its_architecture_size_and_last_layer(lora: Path) -> None:
    found = look(f"lora:{lora}", "llama.cpp")

    weights = found.weights
    assert (lora, lora.stat().st_size) == (found.path, found.size)
    assert ("gguf", "llama", 3) == (weights.format, weights.architecture, weights.layers)
    assert 3 * 2 * 2 * 4 * 128 * 4 == weights.weight_bytes
    assert weights.fingerprint


def test_what_is_no_adapter_says_what_it_is(lora: Path, tmp_path: Path) -> None:
    model = weft_tiny.gguf_path()
    assert f"{model} is no LoRA adapter: its header is that of a model" == missing(model)
    assert f"{tmp_path / 'no.gguf'} does not exist on this node" == missing(tmp_path / "no.gguf")
    assert "is no absolute path" in missing("lora.gguf")
    assert f"{tmp_path} is no file, and llama.cpp loads a LoRA adapter from a GGUF file: name the file" == missing(
        tmp_path
    )
    with pytest.raises(NotFound, match="is an adapter and no model"):
        look(f"path:{lora}", "llama.cpp")


def test_a_folder_of_pefts_is_found_for_vllm(tmp_path: Path) -> None:
    tensors = {
        f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_{side}.weight": np.zeros(shape, np.float32)
        for layer in (0, 4)
        for side, shape in (("A", (2, 8)), ("B", (8, 2)))
    }
    folder = write_peft(tmp_path / "lora", tensors, rank=2)

    weights = look(f"lora:{folder}", "vllm").weights

    assert ("safetensors", "", 5, 4 * 16 * 4) == (
        weights.format,
        weights.architecture,
        weights.layers,
        weights.weight_bytes,
    )


def test_a_folder_that_pefts_did_not_write_says_so(tmp_path: Path) -> None:
    folder = write_peft(tmp_path / "lora", {"x": np.zeros((2, 2), np.float32)}, rank=2)
    config = folder / "adapter_config.json"
    tensors = folder / "adapter_model.safetensors"
    for each in (config, tensors):
        written = each.read_bytes()
        each.unlink()
        each.symlink_to("/dev/zero")
        assert f"{each} is no ordinary file" == missing(folder, "vllm")
        each.unlink()
        each.write_bytes(written)
    tensors.write_bytes(b"\xff" * 100)
    assert f"{tensors} is no safetensors file: its header would take {(1 << 64) - 1} bytes" == missing(folder, "vllm")
    config.write_text(json.dumps({"peft_type": "PROMPT_TUNING"}))
    assert "names the type 'PROMPT_TUNING'" in missing(folder, "vllm")
    config.write_text("{")
    assert f"{config} holds no readable JSON" in missing(folder, "vllm")
    config.unlink()
    assert f"{config} does not exist on this node" == missing(folder, "vllm")
    assert "is no folder" in missing(tensors, "vllm")


def test_a_launch_gets_the_adapters_that_were_accepted_and_no_changed_one(lora: Path) -> None:
    accepted = LoraAdapter(
        name="odd", path=str(lora), scale=0.5, fingerprint=look(f"lora:{lora}", "llama.cpp").weights.fingerprint
    )
    spec = ModelSpec(source=PathSource(path="/m.gguf"), engine="llama.cpp", adapters=(accepted,))

    assert (Lora("odd", str(lora), 0.5),) == loras_of(spec, BUILTIN)

    write_lora(lora, weft_tiny.gguf_path(), rank=4, seed=8)
    with pytest.raises(NotFound, match="has changed since it was deployed: deploy it again"):
        loras_of(spec, BUILTIN)
