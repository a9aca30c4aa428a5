"""What people type for a model's source: a path, a built-in model, or something that can't be served."""

import re
from pathlib import Path

import pytest
from weft_client.failure import Exit, Failure
from weft_client.sources import ServerSource, adapter_path, fileless, local_path, name_for, plain, server_source
from weft_client.specs import spec_of
from weft_contracts.names import NAME


def test_a_path_from_the_root_may_be_on_the_workers_alone() -> None:
    assert "/models/there.gguf" == local_path("/models/there.gguf")


def test_a_word_that_is_neither_a_built_in_model_nor_a_file_here_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failure, match="tinny is neither a built-in model") as refused:
        local_path("tinny")
    assert Exit.USAGE == refused.value.exit


@pytest.mark.parametrize("source", ["llama3:8b", "ollama:llama3", "ftp://models.example/m.gguf", "docker://a/b"])
def test_a_scheme_that_none_knows_is_one_sentence_that_names_those_that_there_are(source: str) -> None:
    with pytest.raises(
        Failure, match=r"is no source that workers know: there are owner/name, hf:.*s3:.*path:"
    ) as refused:
        local_path(source)
    assert Exit.USAGE == refused.value.exit


@pytest.mark.parametrize("source", ["https://example.org/l.gguf", "hf:org/lora", "s3://bucket/l.gguf", "org/lora"])
def test_a_lora_adapter_is_one_of_the_workers_files(source: str) -> None:
    with pytest.raises(Failure, match=r"must lie on the workers' disks.*/loras/style\.gguf") as refused:
        adapter_path(source)
    assert Exit.USAGE == refused.value.exit
    assert "/loras/l.gguf" == adapter_path("/loras/l.gguf")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("path:/models/a b/../m.gguf", "/models/a b/../m.gguf"),
        ("builtin:tiny", "tiny"),
        ("simulated:", "simulated"),
        ("tiny", "tiny"),
        ("hf:a/b", "hf:a/b"),
    ],
)
def test_the_word_for_a_kind_is_taken_off_where_the_rest_says_enough(source: str, said: str) -> None:
    assert said == plain(source)


def test_a_path_that_is_called_one_may_be_relative_and_need_not_be_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path / "Qwen/Qwen3") == plain("path:Qwen/Qwen3")


def test_a_built_in_model_that_there_is_not_is_wrong_usage() -> None:
    with pytest.raises(Failure, match="builtin:huge: there are builtin:tiny, builtin:tiny-embed"):
        plain("builtin:huge")


def test_a_path_is_one_however_its_folder_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for each in ("hf:org/model", "Qwen/Qwen3"):
        (tmp_path / each).mkdir(parents=True)
        assert str(tmp_path / each) == local_path(each)
    assert str(tmp_path / "models/m.gguf") == local_path("models/m.gguf")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/m/llama.gguf", "llama"),
        ("/m/My Model v2.GGUF", "My-Model-v2"),
        ("/m/Modèle (final).gguf", "Modele-final"),
        ("/m/_hidden.gguf", "hidden"),
        ("/m/" + "x" * 200, "x" * 128),
        ("tiny", "tiny"),
    ],
)
def test_a_model_is_called_after_its_file_in_what_a_name_may_have(source: str, name: str) -> None:
    assert name == name_for(source)
    assert re.fullmatch(NAME, name)


def test_a_file_of_whose_name_nothing_is_left_needs_a_name() -> None:
    with pytest.raises(Failure, match=r"模型.*--name NAME") as refused:
        name_for("/m/模型.gguf")
    assert Exit.USAGE == refused.value.exit


def test_an_engine_that_takes_no_files_is_a_source_by_its_name() -> None:
    assert fileless("engine:printer")
    assert "printer" == name_for("engine:printer")
    assert {"source": {"kind": "simulated"}, "engine": "printer"} == spec_of("engine:printer")


@pytest.mark.parametrize("source", ["engine:", "engine:Big Name", "engine:../x"])
def test_an_engine_whose_name_none_can_have_is_wrong_usage(source: str) -> None:
    assert not fileless(source)
    with pytest.raises(Failure, match="want engine:NAME"):
        local_path(source)


def test_a_server_elsewhere_is_named_with_its_model() -> None:
    where = "http://10.0.0.5:11434/v1"
    assert ServerSource("openai", where, "llama3.2:1b") == server_source(f"openai:{where}#llama3.2:1b")
    assert ["llama3.2:1b", "tiny", "my-model"] == [
        name_for(f"openai:{where}#{model}") for model in ("llama3.2:1b", "/models/tiny.gguf", "my model")
    ]
    assert [None, None] == [server_source(each) for each in ("simulated:x", "/models/openai:x#m")]


@pytest.mark.parametrize("source", ["openai:", "openai:http://host/v1", "openai:http://host/v1#", "openai:#m"])
def test_a_server_without_its_model_is_wrong_usage(source: str) -> None:
    with pytest.raises(Failure, match="want openai:URL#MODEL") as refused:
        server_source(source)
    assert Exit.USAGE == refused.value.exit
