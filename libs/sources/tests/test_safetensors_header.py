"""Which types a safetensors file's tensors have, and what is no such file."""

import json
from pathlib import Path

import pytest
from weft_sources.config_weights import weights_of_config
from weft_sources.safetensors_header import tensor_bytes_of


def written(path: Path, header: object, data: int = 0) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(data))
    return path


def tensor(dtype: object, begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": [1], "data_offsets": [begin, end]}


def test_bytes_are_added_up_by_type_over_all_files(tmp_path: Path) -> None:
    one = written(tmp_path / "a", {"__metadata__": {"format": "pt"}, "x": tensor("BF16", 0, 6)}, 6)
    two = written(
        tmp_path / "b", {"y": tensor("BF16", 0, 2), "s": tensor("F32", 2, 6), "q": tensor("F8_E4M3", 6, 9)}, 9
    )
    assert {"BF16": 8, "F32": 4, "F8_E4M3": 3} == tensor_bytes_of((one, two))


@pytest.mark.parametrize(
    ("content", "data", "why"),
    [
        (b"{]", 0, "m.safetensors is no safetensors file: its header is no JSON"),
        ([], 0, "m.safetensors is no safetensors file: its header holds no JSON object"),
        ({"x": tensor("BF16", 0, 6)}, 5, "m.safetensors is truncated, or no safetensors file: "),
        ({"x": tensor(7, 0, 6)}, 6, "m.safetensors: tensor x has the dtype '7': want one such as BF16"),
        ({"x": {"dtype": "BF16"}}, 0, "m.safetensors: tensor x has the data_offsets None: want where it begins"),
        ({"x": tensor("BF16", 6, 0)}, 6, "m.safetensors: tensor x has the data_offsets [6, 0]"),
        ({f"x{i}": tensor(f"T{i}", 0, 0) for i in range(17)}, 0, "m.safetensors is no model's"),
    ],
)
def test_what_is_no_safetensors_file_is_told_by_its_name(tmp_path: Path, content: object, data: int, why: str) -> None:
    found = tensor_bytes_of([written(tmp_path / "m.safetensors", content, data)])
    assert isinstance(found, str)
    assert found.startswith(why)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "m.safetensors is truncated: its header has 0 of 8 bytes"),
        (b"x" * 700, "m.safetensors is no safetensors file: its header would take 8680820740569200760 of 700 bytes"),
    ],
)
def test_a_file_without_a_header_is_none(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    assert why == tensor_bytes_of([path])


def test_a_broken_header_is_why_a_claim_can_not_be_computed() -> None:
    shape = weights_of_config({"num_hidden_layers": 1}, 1, "config.json", "m.safetensors is truncated").shape
    assert shape is not None
    assert ("m.safetensors is truncated", {}) == (shape.fault, shape.tensor_bytes)
