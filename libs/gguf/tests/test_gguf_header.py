"""What a model file says about itself, and files that are none."""

import contextlib
import re
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_gguf.header import GgufError, NotGguf, TruncatedGguf, read_header


def write_model(path: Path, *, tokens: list[str] | None = None, late_text: str = "") -> Path:
    model = gguf.GGUFWriter(path, "qwen3")
    model.add_name("Some Model 0.6B")
    model.add_context_length(4096)
    model.add_block_count(2)
    model.add_embedding_length(64)
    model.add_head_count(8)
    model.add_head_count_kv(2)
    model.add_key_length(16)
    model.add_value_length(16)
    if tokens is not None:
        model.add_tokenizer_model("gpt2")
        model.add_tokenizer_pre("qwen2")
        model.add_token_list(tokens)
        model.add_token_merges([f"{a} x" for a in tokens])
    model.add_eos_token_id(7)
    model.add_add_bos_token(False)
    model.add_chat_template("{{ messages }}" + late_text)
    model.add_tensor("token_embd.weight", np.zeros((10, 64), np.float16))
    for layer in range(2):
        model.add_tensor(f"blk.{layer}.attn_q.weight", np.zeros((64, 64), np.float32))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()
    return path


def test_a_header_tells_what_placement_needs(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf", tokens=["a", "bc"])

    header = read_header(path)

    assert ("qwen3", "Some Model 0.6B", 2, 8, (2, 2)) == (
        header.architecture,
        header.name,
        header.layers,
        header.heads,
        header.kv_heads,
    )
    assert (16, 16, 4096, 2) == (
        header.key_length,
        header.value_length,
        header.context_length,
        header.vocabulary,
    )
    assert 10 * 64 * 2 + 2 * 64 * 64 * 4 == header.tensor_bytes
    assert (64 * 64 * 4, 64 * 64 * 4) == header.layer_bytes
    assert ("gpt2", "qwen2", None, 7, False) == (
        header.tokenizer,
        header.tokenizer_pre,
        header.bos_token,
        header.eos_token,
        header.add_bos,
    )
    assert "{{ messages }}" == header.chat_template
    assert ("F32", "F16") == header.tensor_types
    assert path.stat().st_size == header.file_bytes
    assert 2 * 2 * (16 + 16) * 2 == header.kv_bytes_per_token()


def named_header(path: Path, architecture: str, **numbers: int) -> Path:
    model = gguf.GGUFWriter(path, architecture)
    for name, number in numbers.items():
        model.add_key_value(f"{architecture}.{name.replace('__', '.')}", number, gguf.GGUFValueType.INT64)
    model.add_tensor("token_embd.weight", np.zeros((1, 32), np.float16))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()
    return path


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ({"attention__head_count": -1, "block_count": 1}, "claims -1 attention heads"),
        ({"attention__head_count": 1, "attention__head_count_kv": -7, "block_count": 1}, "claims -7 KV heads"),
        ({"context_length": 1 << 60}, f"claims {1 << 60} tokens of context"),
        (
            {"attention__head_count": 1 << 30, "attention__key_length": 1 << 30, "block_count": 1},
            f"claims {1 << 61} bytes of KV cache for a token",
        ),
    ],
)
def test_a_number_that_no_model_has_is_refused_by_name(tmp_path: Path, numbers: dict[str, int], why: str) -> None:
    with pytest.raises(NotGguf, match=re.escape(why)):
        read_header(named_header(tmp_path / "m.gguf", "a", **numbers))


def test_an_architecture_that_is_no_name_is_refused_and_shown_in_bounds(tmp_path: Path) -> None:
    for architecture in ("x" * 100_000, "a\nb"):
        with pytest.raises(NotGguf, match="it names the architecture") as refused:
            read_header(named_header(tmp_path / "m.gguf", architecture))
        assert len(str(refused.value)) < 300
        assert "\n" not in str(refused.value)


def test_a_large_vocabulary_is_skipped_exactly(tmp_path: Path) -> None:
    tokens = [f"token{i}é" for i in range(60_000)]

    header = read_header(write_model(tmp_path / "m.gguf", tokens=tokens))

    assert 60_000 == header.vocabulary
    assert 7 == header.eos_token


def test_a_vocabulary_with_very_long_tokens_is_skipped_exactly(tmp_path: Path) -> None:
    tokens = ["x" * (i % 400) + str(i) for i in range(5_000)]

    header = read_header(write_model(tmp_path / "m.gguf", tokens=tokens))

    assert (5_000, "{{ messages }}") == (header.vocabulary, header.chat_template)


def test_a_header_larger_than_one_read_is_read_whole(tmp_path: Path) -> None:
    tokens = [f"{i:0200d}" for i in range(60_000)]

    header = read_header(write_model(tmp_path / "m.gguf", tokens=tokens, late_text="é" * 100_000))

    assert 60_000 == header.vocabulary
    assert 100_014 == len(header.chat_template)


def test_a_file_cut_in_its_tensors_is_truncated(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf")
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1000])

    with pytest.raises(TruncatedGguf, match=f"m.gguf is truncated: {whole - 1000} of {whole} bytes"):
        read_header(path)


@pytest.mark.parametrize("length", [5, 12, 24, 60, 300])
def test_a_file_cut_in_its_header_is_truncated(tmp_path: Path, length: int) -> None:
    path = write_model(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(TruncatedGguf, match=r"m\.gguf is truncated"):
        read_header(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a GGUF file"),
        (b"PK\x03\x04" + b"\0" * 100, "is not a GGUF file"),
        (b"GGUF" + struct.pack("<I", 1) + b"\0" * 64, "versions 2 and 3 are readable"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 1) + b"\0" * 64, "it claims"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + b"\0" * 64, "it names no architecture"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<I", 77), "unknown type 77"),
    ],
)
def test_another_file_is_refused_with_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)

    with pytest.raises(NotGguf, match=words):
        read_header(path)


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_model(tmp_path_factory.mktemp("whole") / "m.gguf", tokens=["a"] * 100).read_bytes()


@settings(deadline=None)
@given(damage=st.dictionaries(st.integers(4, 1500), st.integers(0, 255), min_size=1, max_size=6))
def test_a_damaged_header_is_read_or_refused_but_never_breaks_the_reader(
    whole_file: bytes, tmp_path_factory: pytest.TempPathFactory, damage: dict[int, int]
) -> None:
    content = bytearray(whole_file)
    for at, byte in damage.items():
        content[at] = byte
    path = tmp_path_factory.mktemp("damaged") / "m.gguf"
    path.write_bytes(content)

    with contextlib.suppress(GgufError):
        read_header(path)
