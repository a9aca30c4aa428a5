"""A secret on a mesh that speaks TLS throughout: set, fetched, used, set anew; who speaks plainly gets nothing."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import weft_tiny
from weft_identity.nkey import KeyPair
from weft_testing.bare_node import BareNode
from weft_testing.llamacpp_server import LlamaCppServer
from weft_testing.story import MeshUnderTest, until

RIGHT, WRONG = "the-one-that-opens-4711", "the-one-that-doesn-t-0815"
ANSWER = "The capital of France is Paris."


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[MeshUnderTest]:
    """A mesh of one worker, TLS everywhere."""
    mesh = MeshUnderTest(tmp_path, WEFT_TLS="always", WEFT_SECRETS_EVERY="1")
    mesh.up("--no-model")
    try:
        yield mesh
    finally:
        mesh.close()


def set_secret(mesh: MeshUnderTest, value: str) -> None:
    said = mesh.weft("secrets", "set", "cloud", typed=f"{value}\n")
    assert 0 == said.returncode, said.stderr


def status(mesh: MeshUnderTest) -> int:
    return mesh.chat("What is the capital of France?", "theirs").status_code


async def fetched_by_its_node(mesh: MeshUnderTest, url: str) -> httpx.Response:
    """What the worker's own key is answered at an address."""
    node = mesh.http.get(f"{mesh.url}/api/nodes/worker-1").json()["id"]
    seed = (mesh.state / "workers" / "1" / "node.seed").read_text().strip()
    authority = ssl.create_default_context(cafile=str(mesh.state / "trust" / "authority.pem"))
    async with httpx.AsyncClient(timeout=30, verify=authority) as http:
        asker = BareNode(url, "worker-1", http, KeyPair.from_seed(seed))
        assert node == asker.id
        return await asker.secret("cloud")


@pytest.mark.slow
@pytest.mark.sabotage("secrets-past-the-authority")
def test_a_secret_comes_and_is_set_anew_over_tls_and_a_plain_connection_gets_none(closed: MeshUnderTest) -> None:
    mesh = closed
    assert mesh.url.startswith("https://")
    with LlamaCppServer(str(weft_tiny.gguf_path()), alias="their-tiny", key=RIGHT) as server:
        # when a model with a key is deployed
        set_secret(mesh, RIGHT)
        arguments = {"base_url": server.url, "model": "their-tiny", "key": "secret:cloud"}
        spec = {"source": {"kind": "simulated"}, "engine": "openai", "engine_args": arguments}
        assert 201 == mesh.deploy("theirs", spec).status_code
        until("it serves", lambda: mesh.ready_replicas("theirs"), 60)
        # then its engine has the key
        assert ANSWER == mesh.ask(model="theirs")
        # and it is set anew as it runs
        set_secret(mesh, WRONG)
        until("the engine has the other value", lambda: status(mesh) != 200, 60)
        set_secret(mesh, RIGHT)
        until("the engine has the first one again", lambda: status(mesh) == 200, 60)
    # its node is given it sealed; over a plain connection nobody is given anything
    sealed = asyncio.run(fetched_by_its_node(mesh, mesh.url))
    assert 200 == sealed.status_code, sealed.text
    plain = asyncio.run(fetched_by_its_node(mesh, mesh.url.replace("https://", "http://")))
    assert 400 == plain.status_code
    assert "This port speaks HTTPS" in plain.text
    assert "sealed" not in plain.text
    # and no file holds it
    found = [str(file) for file in mesh.folder.rglob("*") if file.is_file() and holds(file)]
    assert [] == found


def holds(file: Path) -> bool:
    """Whether a value stands in a file."""
    try:
        content = file.read_bytes()
    except OSError:  # gone meanwhile
        return False
    return RIGHT.encode() in content or WRONG.encode() in content
