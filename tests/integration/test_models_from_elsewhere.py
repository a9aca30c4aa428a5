"""Models of a web address and of a bucket: deployed as people type them, fetched by ranges, and served."""

from pathlib import Path
from urllib.parse import quote

import pytest
import weft_tiny
from weft_testing.bucket_server import bucket_server
from weft_testing.story import MeshUnderTest
from weft_testing.web_server import WebFile, web_server

PARIS = "The capital of France is Paris."
SECRET = "a-secret-key-that-stands-nowhere"


@pytest.mark.slow
@pytest.mark.sabotage("unnamed-hosts")
def test_a_web_address_and_a_bucket_are_deployed_as_they_are_typed_and_other_hosts_are_not_asked(
    tmp_path: Path,
) -> None:
    # given a web server and a bucket that the workers' operator names, and a web server that nobody names
    content = weft_tiny.gguf_path().read_bytes()
    with web_server() as web, bucket_server() as buckets, web_server() as unnamed:
        address = web.put("/models/from-the-web.gguf", WebFile(content, etag='"1"'))
        elsewhere = unnamed.put("/models/unnamed.gguf", WebFile(content, etag='"1"'))
        buckets.secrets["KEY"] = SECRET
        buckets.put("models", "tiny/from-a-bucket.gguf", content)
        named = ",".join(url.removeprefix("http://") for url in (web.url, buckets.url))
        with MeshUnderTest(
            tmp_path,
            WEFT_SOURCES_ALLOW=named,
            WEFT_S3_ACCESS_KEY="KEY",
            WEFT_S3_SECRET_KEY=SECRET,
        ) as mesh:
            # when both are deployed
            by_web = mesh.weft("deploy", address, timeout=120)
            bucket = f"s3://models/tiny/from-a-bucket.gguf?endpoint={quote(buckets.url, safe='')}"
            by_bucket = mesh.weft("deploy", bucket, timeout=120)
            # then both answer
            assert 0 == by_web.returncode, by_web.stderr
            assert 0 == by_bucket.returncode, by_bucket.stderr
            assert PARIS == mesh.ask(model="from-the-web")
            assert PARIS == mesh.ask(model="from-a-bucket")
            # and a host that nobody named is refused with what would let it be asked, and isn't asked
            refused = mesh.weft("deploy", elsewhere, timeout=120)
            assert 0 != refused.returncode
            assert "WEFT_SOURCES_ALLOW" in refused.stderr
            assert 0 == unnamed.asked.total()
            # and the bucket was asked by signatures, whose key stands in no fact and no log
            assert buckets.signed.total()
            assert SECRET not in str(mesh.events())
            assert SECRET not in "".join(path.read_text() for path in (mesh.state / "logs").rglob("*.log"))
