"""Of a folder of safetensors what engines take is hashed and told; what leads out of it is refused."""

import json
import os
import shutil
from pathlib import Path

import pytest
import weft_tiny
from weft_client.failure import Failure
from weft_client.local_files import LocalModel
from weft_client.local_folder import is_model_folder
from weft_client.local_model import local_model
from weft_contracts.facts.source import UploadSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.source_faults import fault_of_upload

SMALL = ["chat_template.jinja", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my-tiny"
    made.mkdir()
    for name in ("model.safetensors", *SMALL):
        shutil.copy(weft_tiny.folder() / name, made / name)
    return made


def names(model: LocalModel) -> list[str]:
    return [file.said.name for file in model.files]


def test_weights_come_first_and_what_is_told_of_them_has_no_fault(folder: Path) -> None:
    model = local_model(folder)
    assert ["model.safetensors", "config.json"] == names(model)[:2]
    assert sorted(("model.safetensors", *SMALL)) == sorted(names(model))
    assert ((), sum(path.stat().st_size for path in folder.iterdir())) == (model.others, model.size)
    spec = ModelSpec.model_validate({"engine": "vllm", **model.spec})
    assert isinstance(spec.source, UploadSource)
    assert fault_of_upload(spec.source, spec.files) is None
    size = (folder / "model.safetensors").stat().st_size
    assert ("safetensors", size) == (spec.weights.format, spec.weights.weight_bytes)
    assert spec.weights.layers


def test_what_an_index_names_is_sent_and_no_other_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"x" * 100)
    (folder / "consolidated.safetensors").write_bytes(b"x")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    model = local_model(folder)
    assert ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json"] == names(model)[:3]
    assert "model.safetensors.index.json" in names(model)
    assert ("consolidated.safetensors",) == model.others
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(Failure, match=r"names model-00002-of-00002\.safetensors, which is not there"):
        local_model(folder)


def test_code_hidden_files_folders_and_empty_files_are_left_out_and_named(folder: Path) -> None:
    strange = ("modeling_mine.py", ".env", "README.md", "optimizer.bin", "größe.json")
    for name in strange:
        (folder / name).write_text("x")
    (folder / "onnx").mkdir()
    (folder / "vocab.json").touch()
    model = local_model(folder)
    assert sorted((*strange, "onnx", "vocab.json")) == list(model.others)


def test_a_link_out_of_the_folder_is_refused_and_one_within_is_none(folder: Path, tmp_path: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "mine.bin")
    (folder / "tokenizer.json").symlink_to("mine.bin")
    assert "tokenizer.json" in names(local_model(folder))
    (tmp_path / "secret").write_text("s")
    for name in ("config.json", "merges.txt"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(tmp_path / "secret")
        with pytest.raises(Failure, match=rf"{name} is a link out of its folder"):
            local_model(folder)
        (folder / name).unlink()
        shutil.copy(weft_tiny.folder() / "config.json", folder / "config.json")


def test_a_device_a_pipe_and_a_bomb_are_no_files_of_a_model(folder: Path) -> None:
    os.mkfifo(folder / "added_tokens.json")
    local_model(folder)  # it holds no bytes
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    with pytest.raises(Failure, match=r"config\.json is no ordinary file"):
        local_model(folder)
    (folder / "config.json").unlink()
    with (folder / "config.json").open("wb") as bomb:
        bomb.truncate(1 << 40)
    with pytest.raises(Failure, match=r"config\.json is larger than"):
        local_model(folder)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({}, "holds nothing that this engine loads"),
        ({"pytorch_model.bin": b"x"}, "pickles"),
        ({"a.gguf": b"x"}, "name the one that is meant"),
        ({"model.safetensors": b"x"}, r"no config\.json"),
        ({"model.safetensors": b"x", "config.json": b"[]"}, "no JSON object"),
        ({"model.safetensors": b"x", "config.json": b'{"text_config": "x"}'}, "text_config of another shape"),
        ({"model.safetensors": b"x", "config.json": b'{"architectures": 5}'}, "want a list of names"),
    ],
)
def test_what_is_no_model_is_refused_with_what_would_help(tmp_path: Path, made: dict[str, bytes], said: str) -> None:
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Failure, match=said):
        local_model(tmp_path)


def test_a_folder_is_known_by_its_configuration_and_weights(folder: Path, tmp_path: Path) -> None:
    assert is_model_folder(folder)
    assert not is_model_folder(tmp_path)
    assert not is_model_folder(folder / "config.json")


def test_a_pipe_or_a_device_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")
    for path in (tmp_path / "model.gguf", Path("/dev/zero")):
        with pytest.raises(Failure, match="can't be sent: it is neither a file nor a folder"):
            local_model(path)
