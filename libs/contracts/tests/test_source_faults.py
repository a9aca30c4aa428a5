"""What can be wrong with a source that workers fetch: each fault is a sentence that says what would be right."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source, SourceFile, UploadSource
from weft_contracts.source_faults import (
    fault_of_bucket,
    fault_of_endpoint,
    fault_of_file,
    fault_of_file_url,
    fault_of_files,
    fault_of_key,
    fault_of_region,
    fault_of_remote,
    fault_of_repository,
    fault_of_revision,
    fault_of_upload,
)

Fault = Callable[[str], str | None]
_SHA = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (fault_of_repository, "Qwen/Qwen3-0.6B"),
        (fault_of_repository, "gpt2"),
        (fault_of_revision, ""),
        (fault_of_revision, "refs/pr/1"),
        (fault_of_revision, "a" * 40),
        (fault_of_file, "Q4_K_M"),
        (fault_of_file, "sub/model-Q8_0.gguf"),
        (fault_of_file_url, "https://models.example/m.gguf"),
        (fault_of_file_url, "http://10.0.0.5:8000/m.gguf?download=true"),
        (fault_of_bucket, "my-models"),
        (fault_of_key, ""),
        (fault_of_key, "models/a b/"),
        (fault_of_region, "eu-central-1"),
        (fault_of_endpoint, ""),
        (fault_of_endpoint, "http://127.0.0.1:9000"),
    ],
)
def test_what_a_source_may_say(rule: Fault, text: str) -> None:
    assert rule(text) is None


@pytest.mark.parametrize(
    ("rule", "text", "said"),
    [
        (fault_of_repository, "../etc", "want OWNER/NAME"),
        (fault_of_repository, "a/b/c", "want OWNER/NAME"),
        (fault_of_repository, "a/..", "want OWNER/NAME"),
        (fault_of_revision, "a..b", "want a branch"),
        (fault_of_revision, "-f", "want a branch"),
        (fault_of_revision, "a b", "want a branch"),
        (fault_of_file, "../m.gguf", "want a GGUF file's name"),
        (fault_of_file, ".git", "want a GGUF file's name"),
        (fault_of_file_url, "ftp://models.example/m.gguf", "want https://HOST/PATH"),
        (fault_of_file_url, "https://models.example", "names no file"),
        (fault_of_file_url, "https://me@models.example/m", "a user or a password"),
        (fault_of_file_url, "https://models.example/m#part", "a fragment"),
        (fault_of_file_url, "https://models.example/m?Token=x", "Token in its query"),
        (fault_of_file_url, "https://models.example:0/m", "port 0"),
        (fault_of_file_url, "https://models.example:x/m", "is no URL"),
        (fault_of_file_url, "https://[::ffff:169.254.169.254]/m", "link-local address, which is never asked"),
        (fault_of_file_url, "https://models.example/ü", "printable ASCII"),
        (fault_of_file_url, "https://-x/m", "names the host '-x': want a name or an address"),
        (fault_of_bucket, "Models", "want 3 to 63"),
        (fault_of_key, "/m.gguf", "without a leading /"),
        (fault_of_key, "a/../m.gguf", "without . and .."),
        (fault_of_key, "a\nb", "printable"),
        (fault_of_region, "EU", "want a name such as"),
        (fault_of_endpoint, "s3.example", "want https://HOST[:PORT]"),
        (fault_of_endpoint, "https://a:b@s3.example", "a user or a password"),
    ],
)
def test_what_it_may_not_say_is_told_with_what_would_be_right(rule: Fault, text: str, said: str) -> None:
    fault = rule(text)
    assert fault is not None
    assert said in fault


@given(st.text(max_size=60))
def test_no_text_passes_that_could_leave_a_folder_or_end_a_line(text: str) -> None:
    for rule in (fault_of_repository, fault_of_revision, fault_of_file, fault_of_file_url, fault_of_key):
        if rule(text) is None:
            assert ".." not in text.split("/")
            assert text.isprintable()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (HfSource(repository="a/b", revision=".."), "the source's revision is '..'"),
        (HttpsSource(url="https://h"), "the source's url names no file"),
        (S3Source(bucket="abc", key="/"), "the source's key is '/'"),
    ],
)
def test_a_fault_names_the_field(source: RemoteSource, sentence: str) -> None:
    found = fault_of_remote(source)
    assert found is not None
    assert found.sentence.startswith(sentence)


def test_a_source_without_faults_has_none() -> None:
    for source in (HfSource(repository="a/b"), HttpsSource(url="https://h/m"), S3Source(bucket="abc", key="")):
        assert fault_of_remote(source) is None


def test_the_files_of_large_models_fit_and_those_of_a_whole_site_do_not() -> None:
    shards = [
        SourceFile(name=f"model-{each:05}-of-00200.safetensors", size=5 << 30, checksum=_SHA) for each in range(200)
    ]
    assert fault_of_files(tuple(shards)) is None
    long = [SourceFile(name=f"{'n' * 240}-{each}", size=1, checksum=_SHA) for each in range(512)]
    fault = fault_of_files(tuple(long))
    assert fault is not None
    found = re.match(r"the model has 512 files, (\d+) too many: the names and checksums of the first (\d+) fill", fault)
    assert found is not None
    over, fitting = int(found[1]), int(found[2])
    assert 512 == over + fitting
    assert fault_of_files(tuple(long[:fitting])) is None
    assert fault_of_files(tuple(long[: fitting + 1])) is not None
    assert fault_of_files(()) is None


_SENT = SourceFile(name="m.gguf", size=9, checksum="blake3:" + "b" * 64)


def parts(*names: str) -> list[SourceFile]:
    return [_SENT.model_copy(update={"name": name}) for name in names]


@pytest.mark.parametrize(
    "files",
    [
        [_SENT],
        parts("m-00001-of-00002.gguf", "m-00002-of-00002.gguf"),
        parts("M.GGUF"),
        parts("model.safetensors", "config.json", "tokenizer.json", "tokenizer.model", "chat_template.jinja"),
    ],
)
def test_one_gguf_file_the_parts_of_one_or_a_folder_of_safetensors_may_be_sent(files: list[SourceFile]) -> None:
    assert fault_of_upload(UploadSource(name=files[0].name), tuple(files)) is None


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "tells no files"),
        ([_SENT.model_copy(update={"checksum": _SHA})], "has no blake3"),
        ([_SENT.model_copy(update={"checksum": ""})], "has no blake3"),
        ([_SENT.model_copy(update={"size": 0})], "is empty"),
        ([_SENT, _SENT], "one file twice"),
        (parts("m.gguf", "n.gguf"), "not the parts of one"),
        (parts("m-00001-of-00003.gguf", "m-00002-of-00003.gguf"), "not the parts of one"),
        (parts("m-00002-of-00002.gguf", "m-00001-of-00002.gguf"), "not the parts of one"),
        (parts("m.bin"), "want a GGUF file's name or a safetensors file's"),
        ([_SENT.model_copy(update={"name": "a/m.gguf"})], "its first file 'a/m.gguf'"),
        (parts("m.gguf", "a/m.gguf"), "without a folder"),
        (parts("m.gguf", "config.json"), "not the parts of one"),
        (parts("config.json", "m.safetensors"), "first file is 'config.json'"),
        (parts("m.safetensors", "tokenizer.json"), "no config.json"),
        (parts("m.safetensors", "config.json", "modeling.py"), "'modeling.py' is none of a folder of safetensors"),
        (parts("m.safetensors", "config.json", "m.bin"), "'m.bin' is none of a folder of safetensors"),
        (parts("m.safetensors", "config.json", "a/t.jinja"), "without a folder"),
    ],
)
def test_what_is_sent_is_named_sized_and_hashed_before(files: list[SourceFile], said: str) -> None:
    source = UploadSource(name=files[0].name.rpartition("/")[2] if files else "m.gguf")
    fault = fault_of_upload(source, tuple(files))
    assert fault is not None
    assert said in fault


_TEXTS = st.text(max_size=12) | st.from_regex(r"[A-Za-z0-9._/@+=#-]{1,12}", fullmatch=True)


@given(_TEXTS, _TEXTS, _TEXTS)
def test_what_has_no_fault_fits_its_shape(first: str, second: str, third: str) -> None:
    """Also where nobody checked the fields' patterns before."""
    sources: list[RemoteSource] = [
        HfSource.model_construct(repository=first, revision=second, file=third),
        HttpsSource.model_construct(url=f"https://{first}/{second}"),
        S3Source.model_construct(bucket=first, key=second, region=third, endpoint=""),
    ]
    for source in sources:
        if fault_of_remote(source) is None:
            assert source == type(source).model_validate(source.model_dump())
