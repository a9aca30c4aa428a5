"""What people type for a model that workers fetch, and what is asked back."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from weft_client.failure import Exit, Failure
from weft_client.remote_sources import format_of, remote_source
from weft_client.sources import name_for
from weft_client.specs import spec_of
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source
from weft_contracts.source_faults import fault_of_remote
from weft_contracts.source_keys import source_key

QWEN = "Qwen/Qwen3-0.6B"
COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca"


def hub(repository: str = QWEN, revision: str = "", file: str = "") -> HfSource:
    return HfSource(repository=repository, revision=revision, file=file)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in which nothing lies."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("typed", "source"),
    [
        (QWEN, hub()),
        ("hf:gpt2", hub("gpt2")),
        (f"hf:{QWEN}", hub()),
        (f"hf://{QWEN}", hub()),
        (f"{QWEN}-GGUF:Q4_K_M", hub(f"{QWEN}-GGUF", file="Q4_K_M")),
        (f"hf:{QWEN}-GGUF:Q4_K_M", hub(f"{QWEN}-GGUF", file="Q4_K_M")),
        (f"{QWEN}-GGUF:sub-Q8_0.gguf", hub(f"{QWEN}-GGUF", file="sub-Q8_0.gguf")),
        (f"{QWEN}@main", hub(revision="main")),
        (f"hf:{QWEN}@refs/pr/1", hub(revision="refs/pr/1")),
        (f"hf:{QWEN}@{COMMIT}", hub(revision=COMMIT)),
        (f"{QWEN}-GGUF:Q4_K_M@v1", hub(f"{QWEN}-GGUF", "v1", "Q4_K_M")),
        (f"{QWEN}-GGUF@v1:Q4_K_M", hub(f"{QWEN}-GGUF", "v1", "Q4_K_M")),
        (f"https://huggingface.co/{QWEN}", hub()),
        (f"https://huggingface.co/{QWEN}/", hub()),
        (f"https://hf.co/{QWEN}/tree/main", hub(revision="main")),
        (f"https://huggingface.co/{QWEN}-GGUF/blob/main/m-Q8_0.gguf", hub(f"{QWEN}-GGUF", "main", "m-Q8_0.gguf")),
        (
            f"https://huggingface.co/{QWEN}-GGUF/resolve/refs%2Fpr%2F1/sub/m.gguf?download=true",
            hub(f"{QWEN}-GGUF", "refs/pr/1", "sub/m.gguf"),
        ),
        (f"https://huggingface.co/{QWEN}/resolve/refs/pr/1/m.gguf", hub(QWEN, "refs/pr/1", "m.gguf")),
        ("https://models.example/m.gguf", HttpsSource(url="https://models.example/m.gguf")),
        ("http://10.0.0.5:8000/m.gguf?a=b", HttpsSource(url="http://10.0.0.5:8000/m.gguf?a=b")),
        ("s3://models/sub/m.gguf", S3Source(bucket="models", key="sub/m.gguf")),
        ("s3://models", S3Source(bucket="models", key="")),
        (
            "s3://models/folder/?region=eu-1&endpoint=https%3A%2F%2Fs3.example",
            S3Source(bucket="models", key="folder/", region="eu-1", endpoint="https://s3.example"),
        ),
        (
            "s3://models/m.gguf?endpoint=http://127.0.0.1:9000",
            S3Source(bucket="models", key="m.gguf", endpoint="http://127.0.0.1:9000"),
        ),
    ],
)
def test_what_people_type_is_the_source_that_they_mean(typed: str, source: RemoteSource) -> None:
    assert source == remote_source(typed)


@pytest.mark.parametrize(
    "typed", ["tiny", "simulated", "/models/m.gguf", "./m.gguf", "models/m.gguf", "a/b/c", "~/m", "path:/m", "engine:x"]
)
def test_what_lies_here_or_ships_is_nothing_to_fetch(typed: str) -> None:
    assert remote_source(typed) is None


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_name_that_is_a_repositorys_and_a_paths_here_is_asked_back_with_both(tmp_path: Path, kind: str) -> None:
    # given
    (tmp_path / "Qwen").mkdir()
    place = tmp_path / QWEN
    place.mkdir() if kind == "folder" else place.touch()
    # when
    with pytest.raises(Failure, match=f"{QWEN} is a {kind} here.*say path:{QWEN} or hf:{QWEN}") as asked:
        remote_source(QWEN)
    # then
    assert Exit.USAGE == asked.value.exit
    assert hub() == remote_source(f"hf:{QWEN}")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("hf:", "want OWNER/NAME"),
        ("hf:a/b/c", "want OWNER/NAME"),
        ("hf:../b", "want OWNER/NAME"),
        (f"{QWEN}:Q4@v1:Q8", "names two files"),
        (f"hf:{QWEN}:Q4#Q8", "names two files"),
        (f"hf:{QWEN}@", "ends too early"),
        (f"hf:{QWEN}:", "ends too early"),
        (f"hf:{QWEN}@a..b", "the revision is 'a..b'"),
        (f"hf:{QWEN}:../m.gguf", "the file is '../m.gguf'"),
        ("https://huggingface.co/datasets/a/b", "is no model's repository"),
        ("https://huggingface.co/", "is no model's repository"),
        (f"https://huggingface.co/{QWEN}/discussions/1", "is no model's repository"),
        (f"https://huggingface.co/{QWEN}/tree/main/sub", "is a folder of a repository"),
        (f"https://huggingface.co/{QWEN}/blob/main/config.json", f"want the whole repository, hf:{QWEN}@main"),
        ("https://user:pass@huggingface.co/a/b", "a user or a password"),
        ("https://models.example/m.gguf#x", "holds a fragment"),
        ("https://models.example", "names no file"),
        ("https://[x/m.gguf", "is no URL"),
        ("s3://Bucket/m.gguf", "the bucket is 'Bucket'"),
        ("s3://", "the bucket is ''"),
        ("s3://models/m.gguf?profile=x", "says 'profile'"),
        ("s3://models/m.gguf?region=EU", "the region is 'EU'"),
        ("s3://models/../m.gguf", "without . and .."),
        ("s3://models/m.gguf?endpoint=ftp://x", "the endpoint want https://HOST"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage_in_one_sentence(typed: str, said: str) -> None:
    with pytest.raises(Failure) as refused:
        remote_source(typed)
    assert said in str(refused.value)
    assert Exit.USAGE == refused.value.exit


_WORD = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._+@=-]{0,12}", fullmatch=True)
_PATH = st.lists(_WORD, min_size=1, max_size=3).map("/".join)
_SOURCES: st.SearchStrategy[RemoteSource] = st.one_of(
    st.builds(
        HfSource,
        repository=st.from_regex(r"[A-Za-z0-9]{1,8}/[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True),
        revision=st.just("") | _PATH,
        file=st.just("") | _PATH,
    ),
    st.builds(HttpsSource, url=_PATH.map(lambda path: f"https://models.example/{path}")),
    st.builds(
        S3Source,
        bucket=st.from_regex("[a-z0-9]{3,8}", fullmatch=True),
        key=st.text(max_size=20),
        region=st.from_regex("[a-z0-9-]{1,9}", fullmatch=True),
        endpoint=st.sampled_from(["", "https://s3.example:9000"]),
    ),
)


@given(_SOURCES)
def test_what_a_key_says_may_be_typed(source: RemoteSource) -> None:
    assume(fault_of_remote(source) is None)
    assert source == remote_source(source_key(source))


@given(st.text(max_size=40) | st.sampled_from(["hf:", "s3://", "https://"]).flatmap(lambda p: st.text().map(p.__add__)))
def test_any_text_is_a_source_or_none_or_a_sentence(typed: str) -> None:
    try:
        found = remote_source(typed)
    except Failure:
        return
    assert found is None or fault_of_remote(found) is None


@pytest.mark.parametrize(
    ("typed", "name", "engine"),
    [
        (QWEN, QWEN, "vllm"),
        (f"hf:{QWEN}@main", QWEN, "vllm"),
        (f"{QWEN}-GGUF", f"{QWEN}-GGUF", "llama.cpp"),
        (f"{QWEN}:Q4_K_M", QWEN, "llama.cpp"),
        (f"https://huggingface.co/{QWEN}", QWEN, "vllm"),
        ("https://models.example/My%20Model.gguf", "My-Model", "llama.cpp"),
        ("s3://models/sub/m.gguf", "m", "llama.cpp"),
        ("s3://models/qwen3/", "qwen3", "vllm"),
        ("s3://models", "models", "vllm"),
    ],
)
def test_a_model_is_called_as_the_hub_calls_it_and_gets_the_engine_that_its_name_asks_for(
    typed: str, name: str, engine: str
) -> None:
    source = remote_source(typed)
    assert source is not None
    assert {"source": source.model_dump(), "engine": engine} == spec_of(typed)
    assert name == name_for(typed)
    assert "other" == spec_of(typed, "other")["engine"]


def test_a_repository_with_gguf_within_a_word_is_none_of_that_format() -> None:
    assert ["safetensors", "gguf", "gguf"] == [format_of(hub(f"a/{name}")) for name in ("ggufy", "x-gguf", "GGUF_x")]
