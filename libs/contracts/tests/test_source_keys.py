"""A source as one line: what is written is read again, and what names none is refused with a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.digest import files_digest, revision_digest
from weft_contracts.facts.source import (
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    Source,
    UploadSource,
)
from weft_contracts.facts.values import ModelSpec
from weft_contracts.source_keys import NoSource, secret_named, source_key, source_of

_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=40)
_SECRETS = st.sampled_from(["", "hf-token", "A_1"])
_SOURCES: st.SearchStrategy[Source] = st.one_of(
    st.builds(BuiltinSource, name=_TEXT),
    st.builds(PathSource, path=_TEXT),
    st.just(SimulatedSource()),
    st.builds(HfSource, repository=st.just("Qwen/Qwen3-0.6B"), revision=_TEXT, file=_TEXT, secret=_SECRETS),
    st.builds(UploadSource, name=st.from_regex("[A-Za-z0-9_][A-Za-z0-9._+@=-]{0,9}", fullmatch=True)),
    st.builds(HttpsSource, url=_TEXT.map(lambda path: f"https://models.example/{path}"), secret=_SECRETS),
    st.builds(
        S3Source,
        bucket=st.just("my-models"),
        key=_TEXT,
        region=st.sampled_from(["us-east-1", "eu-1"]),
        endpoint=_TEXT,
        secret=_SECRETS,
    ),
)


@given(_SOURCES)
def test_a_source_is_what_its_key_says(source: Source) -> None:
    assert source == source_of(source_key(source))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("ftp://models.example/m.gguf", "want hf:"),
        ("tiny", "want hf:"),
        ("hf:../../etc", "its repository"),
        ("s3://A/b", "its bucket"),
        ("s3:bucket/key", "want hf:"),
        ("upload:../m.gguf", "its name"),
        ("hf:o/m secret:a secret:b", "want one secret"),
    ],
)
def test_what_names_no_source_is_refused_with_a_sentence(key: str, said: str) -> None:
    with pytest.raises(NoSource, match="is no source") as refused:
        source_of(key)
    assert said in str(refused.value)


def test_what_lets_readers_in_is_no_part_of_what_is_read() -> None:
    open_to_all = ModelSpec(source=HfSource(repository="o/m"), engine="vllm")
    shut = ModelSpec(source=HfSource(repository="o/m", secret="hf-token"), engine="vllm")
    assert files_digest(open_to_all) == files_digest(shut)
    assert revision_digest(open_to_all) == revision_digest(shut)
    assert "secret" not in open_to_all.model_dump_json()


@pytest.mark.parametrize(
    ("key", "secret"), [("hf:o/m secret:a", "a"), ("hf:o/m", ""), ("path:/m secret:a", ""), ("no source", "")]
)
def test_a_key_tells_the_secret_of_a_source_that_workers_fetch(key: str, secret: str) -> None:
    assert secret == secret_named(key)
