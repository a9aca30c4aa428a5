"""A bucket keeps files by their content: each is put once, and what is wrong there is told."""

import asyncio
import hashlib
import itertools
import threading
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from weft_files.checksum import Checksum
from weft_files.reach import Reach
from weft_sources import content_bucket
from weft_sources.content_bucket import PART, ContentBucket, bucket_of, server_of
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings
from weft_testing.bucket_server import BucketServer, bucket_server
from weft_testing.loopback_server import LoopbackServer, QuietHandler, serving

BODY = b"a file of a model" * 100
SECRET = "wJalr/of+the+test"


@pytest.fixture
def server() -> Generator[BucketServer]:
    with bucket_server("eu-test-7") as bucket:
        bucket.secrets["KEY"] = SECRET
        bucket.buckets["mesh"] = {}
        yield bucket


def bucket_for(server: BucketServer, secret: str = SECRET, name: str = "mesh") -> ContentBucket:
    place = bucket_of(f"s3://{name}/our/files?endpoint={server.url}&region=eu-test-7")
    settings = SourceSettings(reach=Reach([server_of(place)]), timeout_s=5.0)
    return ContentBucket(place, replace(settings, s3_access_key="KEY", s3_secret_key=secret))


def laid(folder: Path, body: bytes = BODY) -> tuple[Checksum, int, Path]:
    path = folder / "file"
    path.write_bytes(body)
    return Checksum("sha256", hashlib.sha256(body).hexdigest()), len(body), path


async def test_a_file_is_put_once_under_its_content_and_read_from_there(server: BucketServer, tmp_path: Path) -> None:
    bucket, (checksum, size, path) = bucket_for(server), laid(tmp_path)
    assert bucket.size(checksum) is None
    assert await bucket.put(checksum, size, path)
    assert {f"our/files/sha256/{checksum.digits}": BODY} == server.buckets["mesh"]
    assert len(BODY) == bucket.size(checksum)
    address = bucket.address(checksum)
    assert BODY == (await asyncio.to_thread(httpx.get, address.url, trust_env=False)).content
    assert "the mesh's store s3://mesh/our/files" == address.said
    # when another node is as far at the same moment, then it finds it there
    assert not await bucket.put(checksum, size, path)


async def test_a_large_file_goes_by_parts(server: BucketServer, tmp_path: Path) -> None:
    body = bytes(range(256)) * (PART // 128) + b"the end"
    checksum, size, path = laid(tmp_path, body)
    assert await bucket_for(server).put(checksum, size, path)
    key = f"our/files/sha256/{checksum.digits}"
    assert body == server.buckets["mesh"][key]
    assert 3 == server.asked[f"PUT /mesh/{key}"]
    assert {} == server.parts


async def test_a_server_that_knows_no_conditions_gets_the_same_file_again(server: BucketServer, tmp_path: Path) -> None:
    bucket, (checksum, size, path) = bucket_for(server), laid(tmp_path)
    server.conditional = False
    assert await bucket.put(checksum, size, path)
    assert await bucket.put(checksum, size, path)
    assert [BODY] == list(server.buckets["mesh"].values())


async def test_proxies_of_the_environment_are_not_asked(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    checksum, size, path = laid(tmp_path)
    assert await bucket_for(server).put(checksum, size, path)


async def test_what_is_wrong_there_is_put_right_when_that_is_asked(server: BucketServer, tmp_path: Path) -> None:
    bucket, (checksum, size, path) = bucket_for(server), laid(tmp_path)
    key = f"our/files/sha256/{checksum.digits}"
    server.put("mesh", key, b"short")
    assert 5 == bucket.size(checksum)
    server.put("mesh", key, b"")
    assert 0 == bucket.size(checksum)
    assert not await bucket.put(checksum, size, path)
    assert await bucket.put(checksum, size, path, over=True)
    assert BODY == server.buckets["mesh"][key]


class Lengthless(QuietHandler):
    """Answers with an object, and leaves its length out."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"1\r\na\r\n0\r\n\r\n")


def test_an_object_of_unknown_length_is_refused_and_not_taken_for_one_that_is_not_there() -> None:
    server = LoopbackServer(Lengthless)
    with serving(server):
        place = bucket_of(f"s3://mesh?endpoint={server.url}")
        bucket = ContentBucket(place, SourceSettings(reach=Reach([server_of(place)]), timeout_s=5.0))
        with pytest.raises(SourceRefused, match=r"store .* has no length: see that .* speaks S3"):
            bucket.size(Checksum("sha256", hashlib.sha256(BODY).hexdigest()))


async def test_why_a_file_is_not_taken_is_said_with_the_remedy_and_without_a_secret(
    server: BucketServer, tmp_path: Path
) -> None:
    checksum, size, path = laid(tmp_path)

    async def refusal(bucket: ContentBucket, kind: type[SourceRefused]) -> str:
        with pytest.raises(SourceRefused) as refused:
            await bucket.put(checksum, size, path)
        assert kind is refused.type
        assert "\n" not in str(refused.value)
        assert SECRET not in str(refused.value)
        return str(refused.value)

    server.readers.add("KEY")
    assert "takes no files from this node (403)" in await refusal(bucket_for(server), SourceRefused)
    server.readers.clear()
    assert "S3 keys are right" in await refusal(bucket_for(server, "another"), SourceRefused)
    assert "check the bucket" in await refusal(bucket_for(server, name="missing"), SourceRefused)
    server.broken = True
    assert "answers 503" in await refusal(bucket_for(server), SourceAway)
    with pytest.raises(SourceAway, match="answers 503"):
        bucket_for(server).size(checksum)
    server.broken = False
    path.unlink()
    with pytest.raises(FileNotFoundError):
        await bucket_for(server).put(checksum, size, path)


@pytest.mark.parametrize("overdue", [False, True])
async def test_a_put_in_parts_that_is_called_off_or_overdue_leaves_none_of_them(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overdue: bool
) -> None:
    monkeypatch.setattr(content_bucket, "PART", 1 << 16)
    monkeypatch.setattr(content_bucket, "ABORT_S", 20.0)
    checksum, size, path = laid(tmp_path, bytes(5 << 16))
    # given a server that has the first part, and is slow with the others
    begun, go_on, puts = threading.Event(), threading.Event(), itertools.count()

    def hold(said: str) -> None:
        if said.startswith("PUT") and next(puts):
            begun.set()
            go_on.wait(20)

    server.hold = hold
    if overdue:
        monkeypatch.setattr(content_bucket, "BASE_S", 1.0)
        monkeypatch.setattr(content_bucket, "LEAST", 1 << 40)
    task = asyncio.create_task(bucket_for(server).put(checksum, size, path))
    assert await asyncio.to_thread(begun.wait, 20)
    # when
    if overdue:
        await asyncio.sleep(1.0)
    else:
        task.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    # then
    with pytest.raises(SourceAway if overdue else asyncio.CancelledError):
        await task
    assert {} == server.buckets["mesh"]
    assert {} == server.parts


async def test_a_put_that_is_called_off_ends_soon_and_leaves_no_object(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_bucket, "ABORT_S", 0.1)
    checksum, size, path = laid(tmp_path, bytes(PART + 1))
    # given a server that takes the parts and doesn't answer
    begun, go_on = threading.Event(), threading.Event()

    def hold(said: str) -> None:
        if said.startswith("PUT"):
            begun.set()
            go_on.wait(20)

    server.hold = hold
    task = asyncio.create_task(bucket_for(server).put(checksum, size, path))
    assert await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert {} == server.buckets["mesh"]
    # and the next one begins anew
    assert await bucket_for(server).put(checksum, size, path)
    assert [bytes(PART + 1)] == list(server.buckets["mesh"].values())


@pytest.mark.parametrize(
    ("text", "key", "server"),
    [
        ("s3://models", "", ""),
        ("s3://models/", "", ""),
        ("s3://models/a/b", "a/b/", ""),
        ("s3://models/a/b/?endpoint=http%3A%2F%2Fminio%3A9000&region=eu-1", "a/b/", "minio:9000"),
        ("s3://models/a?endpoint=https://[fd00::1]:9000/", "a/", "[fd00::1]:9000"),
    ],
)
def test_a_place_is_named_as_sources_are(text: str, key: str, server: str) -> None:
    place = bucket_of(text)
    assert ("models", key, server) == (place.bucket, place.key, server_of(place))


@pytest.mark.parametrize(
    "text",
    [
        "models/a",
        "hf:o/r",
        "s3://M/a",
        "s3://models/a//b",
        "s3://models/../b",
        "s3://models/%0A",
        f"s3://models/{'a' * 600}",
        "s3://models/a?endpont=http://minio",
        "s3://models/a?endpoint=minio:9000",
        "s3://models/a?endpoint=http://user:hidden@minio",
        "s3://models/a?endpoint=http://minio:x",
        "s3://models/a?endpoint=http://minio/path",
        "s3://models/a?region=EU",
        "s3://models/a secret:name",
    ],
)
def test_what_names_no_place_is_refused_in_one_sentence_that_repeats_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="want ") as refused:
        bucket_of(text)
    assert "hidden" not in str(refused.value)
    assert "\n" not in str(refused.value)
