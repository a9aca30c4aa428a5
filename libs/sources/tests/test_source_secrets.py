"""The value of the secret that a source names stands in the place of the worker's own, and goes to one place."""

import pytest
from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source, SourceFile
from weft_contracts.source_faults import fault_of_remote
from weft_files.reach import Reach
from weft_sources.listing import addresses, list_source
from weft_sources.refused import SourceRefused
from weft_sources.secret_value import settings_with
from weft_sources.settings import SourceSettings
from weft_testing.web_server import WebFile, web_server

OWN = SourceSettings(hub_token="own", s3_access_key="own", s3_secret_key="own", s3_session_token="own")
FILE = SourceFile(name="m.gguf", size=8)


def test_a_hubs_token_is_the_secrets() -> None:
    source = HfSource(repository="o/m", revision="0" * 40, secret="token")
    (address,) = addresses(source, FILE, settings_with(OWN, source, "hf_theirs\n"))
    assert "Bearer hf_theirs" == address.headers["authorization"]


def test_a_web_server_is_shown_the_secret_and_one_without_is_shown_none() -> None:
    source = HttpsSource(url="https://models.example/m.gguf", secret="token")
    (address,) = addresses(source, FILE, settings_with(OWN, source, "theirs"))
    assert {"authorization": "Bearer theirs"} == address.headers
    (bare,) = addresses(HttpsSource(url=source.url), FILE, OWN)
    assert {} == bare.headers


@pytest.mark.parametrize(("value", "session"), [("key:hidden", ""), ("key:hidden:of:session", "of:session")])
def test_a_buckets_keys_are_the_secrets_alone(value: str, session: str) -> None:
    source = S3Source(bucket="models", key="m.gguf", secret="keys")
    settings = settings_with(OWN, source, value)
    kept = (settings.s3_access_key, settings.s3_secret_key, settings.s3_session_token)
    assert ("key", "hidden", session) == kept


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (HfSource(repository="o/m", secret="token"), " \n"),
        (HfSource(repository="o/m", secret="token"), "two\nlines-of-it"),
        (HttpsSource(url="https://models.example/m.gguf", secret="token"), "umläut"),
        (S3Source(bucket="models", key="m.gguf", secret="token"), "hidden-alone"),
        (S3Source(bucket="models", key="m.gguf", secret="token"), "key:"),
    ],
)
def test_a_value_that_can_be_none_is_refused_without_a_word_of_it(source: RemoteSource, value: str) -> None:
    with pytest.raises(SourceRefused, match="the secret token holds no") as refused:
        settings_with(OWN, source, value)
    assert not value.strip() or value not in str(refused.value)


def test_a_secret_does_not_follow_to_where_an_address_leads_on() -> None:
    with web_server() as first, web_server() as second:
        there = second.put("/m.gguf", WebFile(b"GGUF" + bytes(60)))
        source = HttpsSource(url=first.put("/m.gguf", WebFile(redirect=there)), secret="token")
        settings = settings_with(SourceSettings(reach=Reach(["127.0.0.1"])), source, "theirs")
        with pytest.raises(SourceRefused, match="a secret goes to one place alone"):
            list_source(source, ("gguf",), settings)
        assert 0 == second.asked.total()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (HttpsSource(url="http://models.example/m.gguf", secret="token"), "over https alone"),
        (HfSource.model_construct(repository="o/m", secret="a b"), "no secret can be called so"),
        (HfSource(repository="o/m", secret="token"), None),
    ],
)
def test_what_names_a_secret_wrongly_is_told(source: RemoteSource, said: str | None) -> None:
    found = fault_of_remote(source)
    assert (said is None) == (found is None)
    assert found is None or (said is not None and said in found.sentence)
