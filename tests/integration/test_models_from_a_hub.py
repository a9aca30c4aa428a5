"""A model of a hub: deployed by its name, fetched once, verified, and served by as many replicas as are wanted."""

from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_testing.hub_server import HubFile, HubServer, hub_server
from weft_testing.story import MeshUnderTest, until

GGUF = "tiny-F16.gguf"
PARIS = "The capital of France is Paris."


class Lying(HubFile):
    """Its hub names another content than it gives."""

    @cached_property
    def sha256(self) -> str:
        return "0" * 64


@pytest.fixture
def hub() -> Generator[HubServer]:
    content = weft_tiny.gguf_path().read_bytes()
    with hub_server() as server:
        server.repository("o/tiny-GGUF", {GGUF: content, "README.md": b"x"})
        commit = server.repository("o/spoilt-GGUF", {GGUF: content})
        server.repositories["o/spoilt-GGUF"].commits[commit][GGUF] = Lying(content, lfs=True)
        yield server


def spec(repository: str, **fields: Any) -> dict[str, Any]:
    return {"source": {"kind": "hf", "repository": repository}, "engine": "llama.cpp", **fields}


@pytest.mark.slow
@pytest.mark.sabotage("any-content")
def test_a_model_of_a_hub_is_fetched_once_verified_and_served(tmp_path: Path, hub: HubServer) -> None:
    with MeshUnderTest(
        tmp_path, WEFT_HUB=hub.url, WEFT_SOURCES_ALLOW="127.0.0.1", HF_HOME=str(tmp_path / "hf")
    ) as mesh:
        # when a repository is deployed, with two replicas on the one node
        mesh.deploy("hubs", spec("o/tiny-GGUF", min_replicas=2, max_replicas=2)).raise_for_status()
        until("two replicas of it are ready", lambda: len(mesh.ready_replicas("hubs")) == 2, 120)
        # then it answers, and the log tells of the fetch and of what lies there since
        assert PARIS == mesh.ask(model="hubs")
        assert mesh.facts("run", "fetching")
        assert 1 == len(mesh.facts("machine", "files_came"))
        # and the hub was asked for its header once, and for all of it once
        asked = hub.count(f"/{GGUF}")
        assert 2 == hub.count("GET /repos/")

        # when a replica's process ends, it is started again, and costs no request
        ready = len(mesh.facts("run", "ready"))
        mesh.hosts("worker-1")[0].kill()
        until("it is back", lambda: len(mesh.facts("run", "ready")) > ready, 60)
        assert asked == hub.count(f"/{GGUF}")

        # when a hub gives other content than it names
        mesh.deploy("spoilt", spec("o/spoilt-GGUF")).raise_for_status()

        # then the reason names file and source, and no engine sees it
        def reason() -> str:
            return next((said for each in mesh.facts("run", "stopped") if "spoilt" in (said := str(each))), "")

        said = until("why it is not served is said", reason, 60)
        assert "hf:o/spoilt-GGUF could not be fetched" in said
        assert GGUF in said
        assert [] == mesh.ready_replicas("spoilt")
