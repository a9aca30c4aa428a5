"""A file's vocabulary is read whole, in bounds of its own."""

import contextlib
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_gguf import reader, vocabulary
from weft_gguf.header import TruncatedGguf, read_header
from weft_gguf.vocabulary import NotGguf, read_vocabulary


def written(path: Path, tokens: list[str], merges: list[str] = [], **more: object) -> Path:  # noqa: B006
    writer: Any = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_scores([-float(place) for place in range(len(tokens))])
    if merges:
        writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_add_bos_token(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_vocabulary_that_the_header_hops_over_is_read_whole(tmp_path: Path):
    tokens = [f"token {place} ü" for place in range(5000)]
    path = written(tmp_path / "m.gguf", tokens, ["a b"] * 70)

    found = read_vocabulary(path)

    assert 5000 == read_header(path).vocabulary
    assert tuple(tokens) == found.tokens
    assert ("a b",) * 70 == found.merges
    assert (1,) * 5000 == found.types
    assert -4999.0 == found.scores[-1]
    assert ("gpt2", "qwen2") == (found.model, found.pre)
    assert (0, True) == (found.ids["bos"], found.flags["add_bos_token"])


def test_a_vocabulary_above_the_bounds_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path / "m.gguf", ["a"] * 100)
    monkeypatch.setattr(vocabulary, "LONG", {"tokenizer.ggml.tokens": 99})

    with pytest.raises(NotGguf, match=r"tokenizer\.ggml\.tokens has 100 items: 99 are read at most"):
        read_vocabulary(path)


def test_values_above_the_bound_of_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path / "m.gguf", ["a" * 1000] * 100)
    monkeypatch.setattr(vocabulary, "MAX_VALUE_BYTES", 50_000)
    monkeypatch.setattr(reader, "WINDOW", 1000)

    with pytest.raises(NotGguf, match="more than 50000 bytes"):
        read_vocabulary(path)


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 3000), at=st.integers(0, 3000), byte=st.integers(0, 255))
def test_a_broken_file_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, cut: int, at: int, byte: int):
    path = written(tmp_path_factory.mktemp("broken") / "m.gguf", [f"t{place}" for place in range(80)])
    data = bytearray(path.read_bytes())
    data[at % len(data)] = byte
    path.write_bytes(data[: max(8, len(data) - cut)])

    with contextlib.suppress(NotGguf, TruncatedGguf):
        assert len(read_vocabulary(path).tokens) <= len(data)
