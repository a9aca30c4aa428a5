"""A model in several files is read as one, and a set that isn't whole says what is wrong with it."""

import io
import shutil
from pathlib import Path

import pytest
import weft_tiny
from weft_gguf.header import NotGguf, Part, TruncatedGguf, read_header, read_part_from
from weft_gguf.split import read_model, read_named_model
from weft_testing.gguf_files import split_model, write_lora


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """The built-in model in three files."""
    found = split_model(weft_tiny.gguf_path(), tmp_path / "tiny", 10)
    assert [f"tiny-{number:05}-of-00003.gguf" for number in (1, 2, 3)] == [part.name for part in found]
    return found


def test_parts_say_together_what_the_whole_says(parts: list[Path]) -> None:
    whole = read_model(weft_tiny.gguf_path())

    header, files = read_model(parts[0])

    assert tuple(parts) == files
    assert (weft_tiny.gguf_path(),) == whole.files
    assert (3, sum(part.stat().st_size for part in parts)) == (header.splits, header.file_bytes)
    for told in ("tensor_bytes", "tensors", "layer_bytes", "output_bytes", "input_bytes", "kv_heads", "chat_template"):
        assert getattr(whole.header, told) == getattr(header, told), told
    assert header.tensor_bytes > read_header(parts[0]).tensor_bytes, "the first alone tells of its own tensors"


def test_what_is_of_no_layer_is_the_input_or_the_output() -> None:
    header = read_header(weft_tiny.gguf_path())

    norm = 128 * 4
    assert 2048 * 128 * 2 == header.input_bytes
    assert header.input_bytes + norm == header.output_bytes, "its output is made of its embeddings"
    assert header.tensor_bytes == sum(header.layer_bytes) + header.input_bytes + norm
    assert header.kv_bytes_per_token() == sum(header.layer_kv_bytes())
    assert header.layers == len(header.layer_kv_bytes())


def test_a_missing_part_is_named(parts: list[Path]) -> None:
    parts[1].unlink()
    with pytest.raises(NotGguf, match=f"{parts[0].name} is one of 3 files, and {parts[1].name} is missing"):
        read_model(parts[0])


def test_the_first_part_must_be_named(parts: list[Path]) -> None:
    with pytest.raises(NotGguf, match=r"is one part of a model in 3 files: name the first, …-00001-of-00003\.gguf"):
        read_model(parts[1])


def test_a_renamed_part_is_told_where_names_and_content_differ(parts: list[Path], tmp_path: Path) -> None:
    renamed = parts[0].rename(tmp_path / "other-00001-of-00002.gguf")
    with pytest.raises(NotGguf, match="is named as one of 2 files, and says that they are 3"):
        read_model(renamed)


def test_parts_in_wrong_places_are_refused(parts: list[Path]) -> None:
    shutil.copy(parts[2], parts[1])
    with pytest.raises(NotGguf, match=r"00002-of-00003.gguf is no part 2 of 3: it says that it is part 3 of 3"):
        read_model(parts[0])


def test_a_part_of_another_model_is_refused(parts: list[Path], tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    others = split_model(weft_tiny.gguf_path(), tmp_path / "more" / "tiny", 12)
    assert 3 == len(others)
    shutil.copy(others[1], parts[1])
    with pytest.raises(NotGguf, match="hold 31 tensors, and the model has 29: they are of two"):
        read_model(parts[0])


def test_a_truncated_part_is_told_by_its_name(parts: list[Path]) -> None:
    content = parts[2].read_bytes()
    parts[2].write_bytes(content[:-4096])
    with pytest.raises(TruncatedGguf, match=f"{parts[2].name} is truncated: {len(content) - 4096} of "):
        read_model(parts[0])


def test_an_adapter_says_that_it_is_one(tmp_path: Path) -> None:
    header = read_header(write_lora(tmp_path / "lora.gguf", weft_tiny.gguf_path()))

    assert ("adapter", "lora", "llama", 0) == (header.kind, header.adapter, header.architecture, header.layers)
    assert ("model", "") == (read_header(weft_tiny.gguf_path()).kind, read_header(weft_tiny.gguf_path()).adapter)


def test_files_that_lie_elsewhere_say_the_same_and_no_byte_beyond_them_is_asked_for(parts: list[Path]) -> None:
    # given
    there = {part.name: Watched(part.read_bytes()) for part in parts}

    def read(name: str) -> Part | None:
        return read_part_from(there[name], name, len(there[name].getbuffer())) if name in there else None

    # when
    header, names = read_named_model(parts[0].name, read)
    # then
    assert tuple(part.name for part in parts) == names
    assert read_model(parts[0]).header == header
    assert all(file.furthest <= len(file.getbuffer()) for file in there.values())
    del there[parts[2].name]
    with pytest.raises(NotGguf, match=f"is one of 3 files, and {parts[2].name} is missing"):
        read_named_model(parts[0].name, read)


def test_a_file_that_is_shorter_than_it_was_said_to_be_is_cut_off(parts: list[Path]) -> None:
    content = parts[0].read_bytes()
    with pytest.raises(TruncatedGguf):
        read_part_from(Watched(content[:600]), "m.gguf", len(content))
    with pytest.raises(TruncatedGguf, match=r"m\.gguf is truncated"):
        read_part_from(Watched(content), "m.gguf", 600)


class Watched(io.BytesIO):
    """Remembers how far it was asked for."""

    furthest = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert (size or -1) >= 0, "nobody asks for all of it"
        self.furthest = max(self.furthest, self.tell() + (size or 0))
        return super().read(size)
