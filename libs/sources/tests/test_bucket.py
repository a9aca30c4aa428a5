"""Buckets are read through S3's protocol, with signatures that the server checks."""

from collections.abc import Generator
from dataclasses import replace

import httpx
import pytest
from weft_contracts.facts.source import S3Source, SourceFile
from weft_files.reach import Reach
from weft_sources.listing import addresses, list_source, open_ranged
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings
from weft_testing.bucket_server import BucketServer, bucket_server

WEIGHTS = b"GGUF" + bytes(range(256)) * 8000
SECRET = "wJalr/of+the+test"


@pytest.fixture
def server() -> Generator[BucketServer]:
    with bucket_server("eu-test-7") as bucket:
        bucket.secrets["KEY"] = SECRET
        bucket.put("models", "a/m-Q4_0.gguf", WEIGHTS)
        yield bucket


def settings_for(server: BucketServer, *, keys: bool = True) -> SourceSettings:
    reach = Reach([f"127.0.0.1:{server.server.port}"])
    settings = SourceSettings(reach=reach, timeout_s=5.0)
    return replace(settings, s3_access_key="KEY", s3_secret_key=SECRET) if keys else settings


def source_of(server: BucketServer, key: str = "a/m-Q4_0.gguf", bucket: str = "models") -> S3Source:
    return S3Source(bucket=bucket, key=key, region="eu-test-7", endpoint=server.url)


def refusal(source: S3Source, settings: SourceSettings) -> str:
    with pytest.raises(SourceRefused) as refused:
        list_source(source, ("gguf", "safetensors"), settings)
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)
    return str(refused.value)


def test_one_object_is_listed_by_a_signed_request_for_one_byte(server: BucketServer) -> None:
    (file,) = list_source(source_of(server), ("gguf",), settings_for(server)).files
    assert ("m-Q4_0.gguf", len(WEIGHTS)) == (file.name, file.size)
    assert file.checksum.startswith("etag:")
    assert {"query": 1} == dict(server.signed)
    assert {"GET /models/a/m-Q4_0.gguf": 1} == dict(server.asked)


def test_a_folder_of_safetensors_is_listed_with_signed_headers(server: BucketServer) -> None:
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json", "x.bin"):
        server.put("models", f"b/c/{name}", b"12345")
    server.put("models", "b/cc/config.json", b"another folder")
    listing = list_source(source_of(server, "b/c/"), ("safetensors",), settings_for(server))
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json"]
    assert names == [file.name for file in listing.files]
    assert {"header": 1} == dict(server.signed)


def test_a_whole_bucket_may_be_the_folder(server: BucketServer) -> None:
    server.put("one", "m.gguf", WEIGHTS)
    listing = list_source(source_of(server, "", "one"), ("gguf",), settings_for(server))
    assert ["m.gguf"] == [file.name for file in listing.files]
    (address,) = addresses(listing.source, listing.files[0], settings_for(server))
    assert WEIGHTS == httpx.get(address.url, trust_env=False).content


def test_a_folder_of_many_pages_is_listed_whole(server: BucketServer) -> None:
    for number in range(2500):
        server.put("models", f"many/{number:05}.txt", b"")
    server.put("models", "many/z.gguf", WEIGHTS)
    assert "z.gguf" == list_source(source_of(server, "many/"), ("gguf",), settings_for(server)).files[0].name
    assert 3 == server.asked["GET /models"]


def test_an_address_is_signed_and_gives_the_object_to_whoever_has_it(server: BucketServer) -> None:
    server.put("models", "with space/ü+m.gguf", WEIGHTS)
    server.put("models", "with space/m.gguf", WEIGHTS)
    settings = settings_for(server)
    listing = list_source(source_of(server, "with space/"), ("gguf",), settings)
    (address,) = addresses(listing.source, listing.files[0], settings)
    answer = httpx.get(address.url, headers={"Range": "bytes=0-3"}, trust_env=False)
    assert (206, b"GGUF") == (answer.status_code, answer.content)
    assert ("s3://models/with space/m.gguf", "none") == (address.said, address.redirects)
    assert 403 == httpx.get(address.url.replace("m.gguf", "n.gguf"), trust_env=False).status_code
    with open_ranged(listing.source, listing.files[0], settings) as opened:
        assert WEIGHTS == opened.read()


def test_all_parts_of_a_split_model_are_listed(server: BucketServer) -> None:
    for number in (1, 2):
        server.put("models", f"s/m-{number:05}-of-00002.gguf", WEIGHTS)
    listing = list_source(source_of(server, "s/m-00001-of-00002.gguf"), ("gguf",), settings_for(server))
    assert ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"] == [file.name for file in listing.files]


def test_a_public_bucket_is_read_without_keys(server: BucketServer) -> None:
    server.public.add("models")
    settings = settings_for(server, keys=False)
    for key in ("a/m-Q4_0.gguf", "a/"):
        listing = list_source(source_of(server, key), ("gguf",), settings)
        (address,) = addresses(listing.source, listing.files[0], settings)
        assert f"{server.url}/models/a/m-Q4_0.gguf" == address.url
        assert WEIGHTS == httpx.get(address.url, trust_env=False).content
    assert {} == dict(server.signed)


@pytest.mark.parametrize("key", ["a/m-Q4_0.gguf", "a/"])
def test_keys_that_are_missing_or_wrong_are_named_with_the_remedy(server: BucketServer, key: str) -> None:
    said = refusal(source_of(server, key), settings_for(server, keys=False))
    assert f"s3://models/{key} may not be read: give the workers S3 keys" in said
    said = refusal(source_of(server, key), replace(settings_for(server), s3_secret_key="another"))
    assert f"s3://models/{key} may not be read: see that the workers' S3 keys are right" in said


def test_what_is_not_there_is_said_to_be_missing(server: BucketServer) -> None:
    settings = settings_for(server)
    assert "s3://models/a/n.gguf is not there: check bucket and key" in refusal(source_of(server, "a/n.gguf"), settings)
    assert "holds no object: check the folder's name" in refusal(source_of(server, "nothing/"), settings)
    assert "s3://other/ is not there: check the bucket" in refusal(source_of(server, "", "other"), settings)
    assert "is no GGUF file's key" in refusal(source_of(server, "a/readme.txt"), settings)


@pytest.mark.parametrize("key", ["a/m-Q4_0.gguf", "a/"])
def test_another_region_is_named(server: BucketServer, key: str) -> None:
    source = source_of(server, key).model_copy(update={"region": "us-east-1"})
    assert "region (us-east-1)" in refusal(source, settings_for(server))


def test_a_server_of_the_own_network_is_asked_only_where_it_is_named(server: BucketServer) -> None:
    for key in ("a/m-Q4_0.gguf", "a/"):
        assert "WEFT_SOURCES_ALLOW" in refusal(source_of(server, key), replace(settings_for(server), reach=Reach()))
    assert {} == dict(server.asked)


def test_a_server_that_is_gone_is_said_to_be_away() -> None:
    with bucket_server() as gone:
        settings, source = settings_for(gone), source_of(gone, "a/")
    for key in ("a/", "a/m.gguf"):
        with pytest.raises(SourceAway):
            list_source(source.model_copy(update={"key": key}), ("gguf",), settings)


def test_keys_come_from_the_settings_and_never_from_the_environment(
    server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OTHER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "stale")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    settings = settings_for(server)
    listing = list_source(source_of(server, "a/"), ("gguf",), settings)
    (address,) = addresses(listing.source, listing.files[0], settings)
    assert "stale" not in address.url
    assert WEIGHTS == httpx.get(address.url, trust_env=False).content


def test_keys_that_are_lent_for_a_while_are_signed_with_their_token(server: BucketServer) -> None:
    settings = replace(settings_for(server), s3_session_token="lent/for+a-while")
    listing = list_source(source_of(server, "a/"), ("gguf",), settings)
    (address,) = addresses(listing.source, listing.files[0], settings)
    assert "X-Amz-Security-Token=lent%2Ffor%2Ba-while" in address.url
    assert WEIGHTS == httpx.get(address.url, trust_env=False).content
    assert {"header": 1, "query": 1} == dict(server.signed)


def test_without_an_endpoint_amazons_of_the_region_is_meant() -> None:
    source = S3Source(bucket="models", key="a/m.gguf", region="ap-south-2")
    file = SourceFile(name="m.gguf", size=1)
    (plain,) = addresses(source, file, SourceSettings())
    (signed,) = addresses(source, file, SourceSettings(s3_access_key="KEY", s3_secret_key=SECRET))
    assert "https://s3.ap-south-2.amazonaws.com/models/a/m.gguf" == plain.url
    assert signed.url.startswith(f"{plain.url}?X-Amz-Algorithm=")


def test_no_secret_shows_in_settings_or_addresses() -> None:
    settings = SourceSettings(
        hub_token="hf_secret", s3_access_key="AKSECRET", s3_secret_key="sksecret", s3_session_token="stsecret"
    )
    file = SourceFile(name="m.gguf", size=1)
    shown = f"{settings!r} {addresses(S3Source(bucket='models', key='m.gguf'), file, settings)!r}"
    assert "secret" not in shown.lower()
