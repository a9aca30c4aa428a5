"""A bucket is the mesh's own store: the first node puts a model's files there, and the next has them from there."""

from collections import Counter
from pathlib import Path

import pytest
import weft_tiny
from weft_testing.bucket_server import bucket_server
from weft_testing.gguf_files import split_model
from weft_testing.hub_server import hub_server
from weft_testing.story import MeshUnderTest, until

PARIS = "The capital of France is Paris."
SECRET = "a-secret-key-that-stands-nowhere"


@pytest.mark.slow
@pytest.mark.sabotage("store-is-never-read")
def test_files_outlive_their_hub_and_the_node_that_fetched_them_in_the_meshs_store(tmp_path: Path) -> None:
    # given a hub with a model in several files, and a bucket that the workers' operator names
    parts = split_model(weft_tiny.gguf_path(), tmp_path / "tiny", 20)
    contents = {part.name: part.read_bytes() for part in parts}
    with hub_server() as hub, bucket_server() as buckets:
        hub.repository("o/tiny-GGUF", contents)
        buckets.secrets["KEY"] = SECRET
        buckets.buckets["mesh"] = {}
        mesh = MeshUnderTest(
            tmp_path,
            workers=2,
            WEFT_START_GRACE="5",
            WEFT_HUB=hub.url,
            HF_HOME=str(tmp_path / "hf"),
            WEFT_FILES_STORE=f"s3://mesh/files?endpoint={buckets.url}",
            WEFT_SOURCES_ALLOW="127.0.0.1",
            WEFT_S3_ACCESS_KEY="KEY",
            WEFT_S3_SECRET_KEY=SECRET,
        )
        mesh.up("--no-model")
        try:
            # when one worker has fetched it, then its files lie in the bucket by their content
            source = {"kind": "hf", "repository": "o/tiny-GGUF"}
            mesh.deploy("stored", {"source": source, "engine": "llama.cpp"}).raise_for_status()
            (first,) = until("it is served", lambda: mesh.ready_replicas("stored"), 120)
            held = buckets.buckets["mesh"]
            until("its files are in the store", lambda: sorted(contents.values()) == sorted(held.values()), 60)
            assert all(key.startswith("files/sha256/") for key in held)
            # given that worker gone, the hub away but for one file, and that file spoilt in the bucket
            spoilt = parts[-1].name
            (key,) = (key for key, body in held.items() if body == contents[spoilt])
            buckets.put("mesh", key, bytes(len(contents[spoilt])))
            hub.wholes.clear()
            hub.broken = lambda path: 0 if path.endswith(spoilt) else 503
            assert 0 == mesh.weft("hold", first["node_name"]).returncode
            mesh.kill(first["node_name"])
            # when the other one is to serve it
            until(
                "the other serves it",
                lambda: [each for each in mesh.ready_replicas("stored") if each["id"] != first["id"]],
                60,
            )
            assert PARIS == mesh.ask(model="stored")
            # then it had all others from the bucket, and put right what was wrong there
            assert Counter([spoilt]) == hub.wholes
            until("the spoilt file is right", lambda: held[key] == contents[spoilt], 60)
            assert SECRET not in str(mesh.events())
            assert SECRET not in "".join(path.read_text() for path in (mesh.state / "logs").rglob("*.log"))
        finally:
            mesh.close()
