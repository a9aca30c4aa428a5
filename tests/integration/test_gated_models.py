"""A repository behind terms: refused with the remedy, and served once a secret that the mesh keeps lets workers in."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
import weft_tiny
from weft_testing.hub_server import HubServer, hub_server
from weft_testing.story import MeshUnderTest

TOKEN = "hf_4d1f9a0c77aa41b2"
GGUF = "tiny-F16.gguf"


@pytest.fixture
def hub() -> Generator[HubServer]:
    with hub_server() as server:
        server.repository("o/gated-GGUF", {GGUF: weft_tiny.gguf_path().read_bytes()}, gated=True)
        server.tokens[TOKEN] = {"o/gated-GGUF"}
        yield server


def _holding(folder: Path, text: bytes) -> list[Path]:
    """Files of a state that hold a text."""
    found: list[Path] = []
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink() and text in file.read_bytes():
            found.append(file)
    return found


@pytest.mark.slow
@pytest.mark.sabotage("secrets-of-engines-alone")
def test_a_gated_model_is_fetched_by_a_secret_that_is_named_and_told_to_nobody_else(
    tmp_path: Path, hub: HubServer
) -> None:
    with MeshUnderTest(
        tmp_path, WEFT_HUB=hub.url, WEFT_SOURCES_ALLOW="127.0.0.1", HF_HOME=str(tmp_path / "hf"), HF_TOKEN=""
    ) as mesh:
        # when it is asked for by nobody in particular
        refused = mesh.weft("deploy", "o/gated-GGUF", "--dry-run")
        # then one sentence says why not, and what helps
        assert 0 != refused.returncode
        assert "o/gated-GGUF is gated: accept its terms on the hub" in refused.stderr
        assert "--source-secret" in refused.stderr

        # when a secret is named that nobody set
        unknown = mesh.weft("deploy", "o/gated-GGUF", "--source-secret", "hub")
        # then that is told
        assert 0 != unknown.returncode
        assert "there is no secret hub: set it first" in unknown.stderr

        # when it is set, and named
        assert 0 == mesh.weft("secrets", "set", "hub", typed=f"{TOKEN}\n").returncode
        words = ("deploy", "o/gated-GGUF", "--name", "shut", "--source-secret", "hub")
        tried = mesh.weft(*words, "--dry-run", timeout=60)
        # then a dry run tells the size, the files, the licence and the gate
        assert 0 == tried.returncode, tried.stdout + tried.stderr
        assert re.search(r"1 file of .*, licence apache-2.0, gated: its terms", tried.stdout), tried.stdout
        # and not a byte of a model is here
        assert [] == [*mesh.state.glob("workers/*/files/blobs/*/*"), *mesh.state.glob("workers/*/files/partial/*")]

        # when it is deployed
        deployed = mesh.weft(*words, timeout=180)
        # then the model answers
        assert 0 == deployed.returncode, deployed.stdout + deployed.stderr
        assert "The capital of France is Paris." == mesh.ask(model="shut")
        # and the secret can't be removed while the model names it
        assert "shut would be left without it" in mesh.weft("secrets", "remove", "hub").stderr
        # and the token lies nowhere
        assert [] == _holding(mesh.state, TOKEN.encode())
