"""Nodes that leave: by an admin, by SIGTERM, for good. Nobody who is served notices, and what can't be finished in
time is told."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from weft_testing.machine import done, end, machine, new_token, node, reaches, start
from weft_testing.story import MeshUnderTest, until

from .stream_load import StreamLoad

pytestmark = pytest.mark.slow

SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 64,
    "engine_args": {"ms_per_token": 50},
}
"""20 tokens a second."""
STREAM = 40
"""Tokens of a stream of 2 s."""
LONG = 600


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """Two workers and no model. Each story leaves the nodes as they were, and takes its model away."""
    mesh = MeshUnderTest(tmp_path_factory.mktemp("leaving"), workers=2)
    mesh.up("--no-model")
    try:
        yield mesh
    finally:
        mesh.close()


def serve(mesh: MeshUnderTest, model: str, **spec: Any) -> str:
    """Deploy, and wait for a ready replica; its node's name."""
    mesh.deploy(model, SPEC | spec).raise_for_status()
    until(f"{model} serves", lambda: mesh.ready_replicas(model), 60)
    return mesh.ready_replicas(model)[0]["node_name"]


def take_away(mesh: MeshUnderTest, model: str) -> None:
    """Delete a model, and wait until nothing of it runs."""
    done(mesh, "remove", model)
    until(f"{model} is gone", lambda: not [r for r in mesh.replicas() if r["model_name"] == model], 60)


def serve_on(mesh: MeshUnderTest, name: str, model: str) -> None:
    """Deploy a model that finds its place on a machine of its own."""
    for other in ("worker-1", "worker-2"):
        done(mesh, "nodes", "cordon", other)
    assert name == serve(mesh, model)
    for other in ("worker-1", "worker-2"):
        done(mesh, "nodes", "uncordon", other)


def head(mesh: MeshUnderTest) -> int:
    return mesh.status()["log"]["position"]


def story_of(mesh: MeshUnderTest, id: str, after: int) -> list[str]:
    """What the log says of a node's drain, in order: the steps that design names."""
    steps: list[str] = []
    for event in mesh.events(after):
        own = event["key"].partition(".")[0] == id
        for fact in event["facts"]:
            match event["kind"], fact["type"]:
                case "node", "draining" | "drained" | "unassigned" | "resumed" | "assigned" | "removed" if own:
                    steps.append(fact["type"])
                case "model", "scaled":
                    steps += ["added"] * bool(fact["add"]) + ["retired"] * bool(fact["retire"])
                case "run", "ready" if not own:
                    steps.append("ready elsewhere")
                case "run", "stopped" if own:
                    steps.append("stopped")
                case _:
                    pass
    return steps


IN_ORDER = ["draining", "added", "ready elsewhere", "retired", "unassigned", "stopped", "drained"]


@pytest.mark.sabotage("hasty-drain")
def test_a_drained_nodes_streams_all_end_whole_and_its_replica_serves_elsewhere_first(mesh: MeshUnderTest) -> None:
    # given a model that streams without a pause
    home = serve(mesh, "busy")
    id, after = node(mesh, home)["id"], head(mesh)
    with StreamLoad(mesh.url, "busy", per_second=5, tokens=STREAM) as load:
        load.goes_on(1)
        # when its node is drained
        told = done(mesh, "drain", home, "--deadline", "30s")
        load.goes_on(10)
    # then none failed and none was cut
    assert {} == load.troubles
    # and the log has it in the design's order
    assert IN_ORDER == story_of(mesh, id, after)
    (drained,) = mesh.facts("node", "drained", after)
    assert {} == drained["fact"]["unfinished"]
    # and who drained reads it
    for words in (f"{home} drains", "takes nothing new", f"has stopped on {home}", f"{home} is drained"):
        assert words in told
    assert "drained" in done(mesh, "nodes", "get", home)
    assert "drained already" in done(mesh, "drain", home)
    # nothing is placed there, not even by a new start of its worker, until the drain is lifted
    mesh.kill(home)
    until(f"{home} starts again", lambda: mesh.part(home)["state"] == "ready", 60)
    mesh.deploy("busy", SPEC | {"min_replicas": 2, "max_replicas": 2, "strategy": "spread"}).raise_for_status()
    until("both are there", lambda: 2 == len(mesh.ready_replicas("busy")), 60)
    assert {home} & {r["node_name"] for r in mesh.ready_replicas("busy")} == set()
    assert "drained" == node(mesh, home)["state"]
    done(mesh, "nodes", "resume", home)
    until(f"{home} is heard", lambda: "healthy" == node(mesh, home)["state"], 60)
    mesh.deploy("busy", SPEC | {"min_replicas": 3, "max_replicas": 3, "strategy": "spread"}).raise_for_status()
    until(f"{home} serves again", lambda: home in {r["node_name"] for r in mesh.ready_replicas("busy")}, 60)
    take_away(mesh, "busy")


@pytest.mark.sabotage("deaf-to-return")
def test_a_worker_told_to_stop_drains_first_and_serves_again_when_it_is_back(mesh: MeshUnderTest) -> None:
    # given a machine of its own that serves
    secret = new_token(mesh, "--auto-approve")
    guest = start(mesh, "guest", secret, "--labels", "guest=yes")
    try:
        id = reaches(mesh, "guest", "healthy")["id"]
        serve_on(mesh, "guest", "moving")
        after = head(mesh)
        with StreamLoad(mesh.url, "moving", per_second=5, tokens=STREAM) as load:
            load.goes_on(1)
            # when it is told to stop
            assert 0 == end(guest)
            load.goes_on(10)
        # then all was as in an admin's drain
        assert {} == load.troubles
        assert IN_ORDER == story_of(mesh, id, after)
        assert "drained" == node(mesh, "guest")["state"]
        # and it is back in the mesh when it comes back, and serves
        guest = start(mesh, "guest", secret, "--labels", "guest=yes")
        reaches(mesh, "guest", "healthy")
        assert ["worker"] == [e["fact"]["why"] for e in mesh.facts("node", "draining", after)]
        assert 1 == len(mesh.facts("node", "resumed", after))
        assert "guest" == serve(mesh, "anew", selector={"guest": "yes"})
        take_away(mesh, "anew")
        take_away(mesh, "moving")
    finally:
        end(guest)


@pytest.mark.sabotage("silent-about-the-unfinished")
def test_what_the_only_node_cant_finish_in_time_is_told_to_everybody(mesh: MeshUnderTest) -> None:
    # given a model on the only node that is left
    home = serve(mesh, "alone")
    (other,) = {"worker-1", "worker-2"} - {home}
    done(mesh, "drain", other)
    after = head(mesh)
    with (
        StreamLoad(mesh.url, "alone", per_second=4, tokens=LONG) as endless,
        StreamLoad(mesh.url, "alone", per_second=4, tokens=10) as short,
    ):
        short.goes_on(1)
        endless.begin_no_more()
        # when it is drained too
        told = done(mesh, "drain", home, "--deadline", "4s")
    # then short requests were served or refused in words, and endless ones got an error
    assert any(each.trouble is None for each in short.ended)
    assert all(each.trouble is None or each.trouble.startswith("503: ") for each in short.ended), short.troubles
    assert [True] * len(endless.ended) == ["not done in time" in (each.trouble or "") for each in endless.ended]
    # and the log, and who drained, know how many
    (drained,) = mesh.facts("node", "drained", after)
    assert len(endless.ended) == sum(drained["fact"]["unfinished"].values())
    assert f"{len(endless.ended)} requests were still running at the deadline" in told
    # and the model says that it has no place, and why
    refused = mesh.chat("Still there?", "alone")
    assert (503, True) == (refused.status_code, "is draining" in refused.json()["error"]["message"])
    # until the nodes are back
    for each in (home, other):
        done(mesh, "nodes", "resume", each)
    until("it serves again", lambda: mesh.ready_replicas("alone"), 60)
    assert 200 == mesh.chat("Still there?", "alone", max_tokens=3).status_code
    take_away(mesh, "alone")


@pytest.mark.sabotage("removal-without-a-drain")
def test_a_node_that_is_removed_finishes_its_streams_first(mesh: MeshUnderTest) -> None:
    secret = new_token(mesh, "--auto-approve")
    with machine(mesh, "sold", secret) as sold:
        # given a machine that serves
        id = reaches(mesh, "sold", "healthy")["id"]
        serve_on(mesh, "sold", "kept")
        after = head(mesh)
        with StreamLoad(mesh.url, "kept", per_second=5, tokens=STREAM) as load:
            load.goes_on(1)
            # when it is removed
            answer = mesh.http.delete(f"{mesh.url}/api/nodes/sold", params={"deadline_s": 30, "reason": "sold"})
            assert (202, "draining") == (answer.status_code, answer.json()["state"])
            reaches(mesh, id, "removed")
        # then it was drained first
        assert {} == load.troubles
        assert [*IN_ORDER, "removed"] == story_of(mesh, id, after)
        assert ["sold"] == [e["fact"]["why"] for e in mesh.facts("node", "removed", after)]
        # and its worker is told so, and ends
        assert 78 == status(sold)
        take_away(mesh, "kept")


def status(process: subprocess.Popen[bytes]) -> int:
    """Its exit status, once it has ended by itself."""
    until("the worker ends", lambda: process.poll() is not None, 60)
    return process.returncode
