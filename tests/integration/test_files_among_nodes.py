"""A model's files leave their hub once and go from node to node, to those that are to run it and to nobody else."""

import base64
import ssl
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import weft_tiny
from weft_contracts import certificates
from weft_contracts.ids import NodeId
from weft_identity import nkey
from weft_testing.gguf_files import split_model
from weft_testing.hub_server import HubServer, hub_server
from weft_testing.machine import machine, new_token, reaches
from weft_testing.story import MeshUnderTest, until

PARIS = "The capital of France is Paris."


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """With a model in several files."""
    parts = split_model(weft_tiny.gguf_path(), tmp_path_factory.mktemp("split") / "tiny", 20)
    with hub_server() as server:
        server.repository("o/tiny-GGUF", {part.name: part.read_bytes() for part in parts})
        yield server


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, hub: HubServer) -> Iterator[MeshUnderTest]:
    """Three workers that speak TLS, each of which takes one replica of a model, and a model with one on each."""
    settings: dict[str, Any] = {"WEFT_TLS": "always", "WEFT_HUB": hub.url, "WEFT_SOURCES_ALLOW": "127.0.0.1"}
    settings["HF_HOME"] = str(tmp_path_factory.mktemp("hf"))
    made = MeshUnderTest(tmp_path_factory.mktemp("mesh"), workers=3, **settings)
    made.up("--no-model")
    try:
        for name in ("worker-1", "worker-2", "worker-3"):
            capped = made.http.put(f"{made.url}/api/nodes/{name}/max-replicas-per-model", json={"value": 1})
            capped.raise_for_status()
        source = {"kind": "hf", "repository": "o/tiny-GGUF"}
        wanted = {"min_replicas": 4, "max_replicas": 4, "selector": {"!idle": ""}}
        spec = {"source": source, "engine": "llama.cpp", **wanted}
        made.deploy("spread", spec).raise_for_status()
        until("all three serve it", lambda: len(made.ready_replicas("spread")) == 3, 180)
        yield made
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.sabotage("every-node-asks-the-source")
def test_a_models_files_leave_the_hub_once_and_come_to_a_later_node_without_it(
    mesh: MeshUnderTest, hub: HubServer
) -> None:
    # given three nodes that were told at once to serve a model
    parts = list(next(iter(hub.repositories["o/tiny-GGUF"].commits.values())))
    assert len(parts) > 1
    # then each of its files left the hub once, and lies on each of them
    assert dict.fromkeys(parts, 1) == dict(hub.wholes)
    assert 3 == len(mesh.facts("machine", "files_came"))
    assert 3 == len({each["node"] for each in mesh.ready_replicas("spread")})
    # when the hub is away and another machine joins
    hub.broken = lambda path: 503
    asked = hub.asked.total()
    with machine(mesh, "fourth", new_token(mesh, "--auto-approve"), WEFT_HUB=hub.url, WEFT_SOURCES_ALLOW="127.0.0.1"):
        reaches(mesh, "fourth", "healthy")
        # then it serves the model, from what the others gave it
        until("the fourth serves it", lambda: len(mesh.ready_replicas("spread")) == 4, 120)
        assert 4 == len(mesh.facts("machine", "files_came"))
        assert asked == hub.asked.total()
        assert PARIS == mesh.ask(model="spread")
    hub.broken = lambda path: 0


@pytest.mark.slow
@pytest.mark.sabotage("files-for-any-node")
def test_a_node_that_is_to_run_nothing_gets_no_files(mesh: MeshUnderTest) -> None:
    # given a node of the mesh that takes no replica
    with machine(mesh, "idle", new_token(mesh, "--auto-approve"), "--labels", "idle=yes"):
        idle = reaches(mesh, "idle", "healthy")
        holder = mesh.http.get(f"{mesh.url}/api/nodes/worker-1").json()
        # when it asks another one for a file that lies there, by name and with all that it can sign
        files = mesh.facts("machine", "files_came")[0]["fact"]["files"]
        spec = mesh.http.get(f"{mesh.url}/api/models/spread").json()
        checksum = spec["files"][0]["checksum"]
        answer = read(mesh, NodeId(idle["id"]), holder, files, checksum)
        # then it is refused for that, and learns nothing
        assert 403 == answer.status_code, answer.text
        assert "needs no files" in answer.json()["detail"]
    # and who has no certificate of a node is refused for that
    bare = httpx.get(f"https://127.0.0.1:{holder['addresses']['http_port']}/files/{files}/{checksum}", verify=False)
    assert (403, "node only") == (bare.status_code, " ".join(bare.json()["detail"].split(",")[0].split()[-2:]))


def read(mesh: MeshUnderTest, reader: NodeId, holder: dict[str, Any], files: str, checksum: str) -> httpx.Response:
    """Ask one node for a file with another one's key and certificate."""
    state = mesh.folder / "idle"
    key = nkey.KeyPair.from_seed((state / "node.seed").read_text().strip())
    nonce = str(int(time.time()))
    signature = key.sign(f"weft-files:{files}:{holder['id']}:{reader}:{nonce}".encode())
    headers = {"weft-node": reader, "weft-nonce": nonce, "weft-signature": base64.b64encode(signature).decode()}
    tls = state / "tls"
    context = ssl.create_default_context(cafile=str(tls / certificates.AUTHORITY))
    context.load_cert_chain(tls / certificates.CERTIFICATE, tls / certificates.KEY)
    url = f"https://127.0.0.1:{holder['addresses']['http_port']}/files/{files}/{checksum}"
    named = {"sni_hostname": certificates.server_name(certificates.node_role(NodeId(holder["id"])))}
    with httpx.Client(verify=context, trust_env=False, timeout=30) as client:
        return client.get(url, headers=headers, extensions=named)
