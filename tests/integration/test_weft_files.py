"""Models' files on nodes: seen, fetched ahead of need, kept, and removed once nothing uses them."""

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import weft_tiny
from weft_testing.hub_server import HubServer, hub_server
from weft_testing.story import MeshUnderTest, until

GGUF = "tiny-F16.gguf"
PARIS = "The capital of France is Paris."
SPEC = {"source": {"kind": "hf", "repository": "o/tiny-GGUF"}, "engine": "llama.cpp"}


@pytest.fixture
def hub() -> Generator[HubServer]:
    with hub_server() as server:
        server.repository("o/tiny-GGUF", {GGUF: weft_tiny.gguf_path().read_bytes()})
        yield server


@pytest.fixture
def gate(hub: HubServer) -> Generator[threading.Event]:
    """While it isn't set, the hub gives no weights."""
    gate = threading.Event()
    gate.set()

    def waits(path: str) -> int:
        if path.startswith("/repos/"):
            gate.wait(60)
        return 0

    hub.broken = waits
    yield gate
    gate.set()


@pytest.fixture
def mesh_of_hub(tmp_path: Path, hub: HubServer) -> Generator[MeshUnderTest]:
    """A mesh of one worker, whose hub is the test's own."""
    with MeshUnderTest(
        tmp_path, WEFT_HUB=hub.url, WEFT_SOURCES_ALLOW="127.0.0.1", HF_HOME=str(tmp_path / "hf")
    ) as mesh:
        yield mesh


def nodes_of(mesh: MeshUnderTest) -> dict[str, dict[str, Any]]:
    """How the one model's files stand, by node."""
    items = mesh.http.get(f"{mesh.url}/api/files").raise_for_status().json()["items"]
    return {each["node_name"]: each for files in items for each in files["nodes"]}


def said(mesh: MeshUnderTest, *words: str) -> str:
    done = mesh.weft("files", *words)
    assert 0 == done.returncode, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.sabotage("files-removed-in-use")
def test_files_are_fetched_ahead_kept_and_removed_once_nothing_uses_them(tmp_path: Path, hub: HubServer) -> None:
    with MeshUnderTest(
        tmp_path, workers=2, WEFT_HUB=hub.url, WEFT_SOURCES_ALLOW="127.0.0.1", HF_HOME=str(tmp_path / "hf")
    ) as mesh:
        # given a model of a hub that runs on one of two nodes
        mesh.deploy("hubs", SPEC).raise_for_status()
        (replica,) = until("it is ready", lambda: mesh.ready_replicas("hubs"), 120)
        one = replica["node_name"]
        (two,) = {"worker-1", "worker-2"} - {one}
        assert {one: "here"} == {name: each["state"] for name, each in nodes_of(mesh).items()}
        assert replica["id"] in said(mesh)

        # when it is fetched ahead to one more
        asked = hub.count("GET /repos/")
        assert f"{two} fetches the files of hubs" in said(mesh, "fetch", "hubs", "--nodes", "1")
        # then it lies there and stays, and left the hub once
        until("it lies there", lambda: nodes_of(mesh).get(two, {}).get("state") == "here", 60)
        assert [True, False] == [nodes_of(mesh)[each]["pinned"] for each in (two, one)]
        assert 2 == len(mesh.facts("machine", "files_came"))
        assert asked == hub.count("GET /repos/")
        # and no third node can have it
        refused = mesh.weft("files", "fetch", "hubs", "--nodes", "1")
        assert (1, True) == (refused.returncode, "hubs can be fetched on 0 more nodes and not on 1" in refused.stderr)

        # when it is kept where it runs, too, and no longer where it doesn't
        assert f"{one} keeps the files of hubs" in said(mesh, "pin", "hubs", "--node", one)
        assert two in said(mesh, "unpin", "hubs", "--node", two)
        # then that is so
        assert [True, False] == [nodes_of(mesh)[each]["pinned"] for each in (one, two)]

        # when it is to go from everywhere
        assert f"on {one} once nothing uses them" in said(mesh, "remove", "hubs")
        # then it goes where nothing uses it, and stays where it runs
        until("it is gone from the other node", lambda: two not in nodes_of(mesh))
        ready = len(mesh.facts("run", "ready"))
        mesh.hosts(one)[0].kill()
        until("it is ready again", lambda: len(mesh.facts("run", "ready")) > ready, 60)
        assert ("here", True) == (nodes_of(mesh)[one]["state"], nodes_of(mesh)[one]["leaves"])
        assert PARIS == mesh.ask(model="hubs")
        assert 1 == len(mesh.facts("machine", "files_gone"))

        # and when it runs no more, it goes
        mesh.http.delete(f"{mesh.url}/api/models/hubs").raise_for_status()
        until("it is gone", lambda: not nodes_of(mesh), 60)
        assert 2 == len(mesh.facts("machine", "files_gone"))


@pytest.mark.slow
@pytest.mark.sabotage("files-come-unseen")
def test_files_that_come_ahead_of_any_replica_are_seen_on_their_way(
    mesh_of_hub: MeshUnderTest, gate: threading.Event
) -> None:
    mesh = mesh_of_hub
    # given a model that nobody runs, of a hub that is slow
    mesh.deploy("hubs", {**SPEC, "min_replicas": 0}).raise_for_status()
    assert "on no node" in said(mesh)
    gate.clear()
    # when it is fetched ahead
    assert "worker-1 fetches the files of hubs" in said(mesh, "fetch", "hubs", "--node", "worker-1")
    # then it is seen to come
    until("the node says that it fetches", lambda: nodes_of(mesh)["worker-1"]["state"] == "coming")
    assert "[................] fetching 0 %" in said(mesh)
    # and once the hub gives it, it lies there, and no replica was needed for it
    gate.set()
    until("it lies there", lambda: nodes_of(mesh)["worker-1"]["state"] == "here", 60)
    assert [] == mesh.facts("run", "fetching")
