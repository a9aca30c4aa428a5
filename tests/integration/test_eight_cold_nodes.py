"""Eight agents that are to have one model at once, with nothing on their disks: its file leaves the hub once."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_testing.hub_server import hub_server
from weft_testing.story import MeshUnderTest, until

GGUF = "tiny-F16.gguf"
NODES = 8


@pytest.mark.slow
@pytest.mark.sabotage("every-node-asks-the-source")
def test_eight_agents_that_begin_at_once_take_a_file_from_its_hub_once(tmp_path: Path) -> None:
    body = weft_tiny.gguf_path().read_bytes() + bytes(8 << 20)
    with hub_server() as hub:
        hub.repository("o/tiny-GGUF", {GGUF: body})
        settings: dict[str, Any] = {
            "WEFT_HUB": hub.url,
            "WEFT_SOURCES_ALLOW": "127.0.0.1",
            "HF_HOME": str(tmp_path / "hf"),
        }
        mesh = MeshUnderTest(tmp_path, workers=NODES, **settings)
        with closing(mesh):
            mesh.up("--no-model")
            # given a model that nobody runs, and eight nodes without its file
            spec = {"source": {"kind": "hf", "repository": "o/tiny-GGUF"}, "engine": "llama.cpp", "min_replicas": 0}
            mesh.deploy("hubs", spec).raise_for_status()
            # when all of them are to have it at once
            told = mesh.weft("files", "fetch", "hubs", "--nodes", str(NODES), timeout=60)
            assert 0 == told.returncode, told.stderr
            until("all have it", lambda: len(mesh.facts("machine", "files_came")) == NODES, 120)
            # then it left the hub once, and lies whole on each of them, which nothing half-made does
            assert {GGUF: 1} == dict(hub.wholes)
            found = [*mesh.state.glob(f"workers/*/files/layouts/*/{GGUF}")]
            assert [body] * NODES == [path.read_bytes() for path in found]
            assert [] == [*mesh.state.glob("workers/*/files/partial/*.part")]
