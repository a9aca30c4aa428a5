"""How many replicas and where, as LocalAI's clients say it: a replica on each node that matches, and field by field."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from weft_testing.machine import done, machine, new_token, reaches
from weft_testing.story import MeshUnderTest, until

SPEC = {"source": {"kind": "simulated"}, "engine": "simulated"}
LOCALAI = "/api/nodes/scheduling"


def on(mesh: MeshUnderTest) -> list[str]:
    """The nodes of the model's replicas that are wanted, each as often as it has one."""
    return sorted(each["node_name"] or "" for each in mesh.replicas() if each["model_name"] == "m" and each["wanted"])


def serves_on(mesh: MeshUnderTest, *nodes: str) -> None:
    def look() -> bool:
        ready = sorted(each["node_name"] for each in mesh.ready_replicas("m"))
        return ready == on(mesh) == sorted(nodes)

    until(f"m serves on {', '.join(nodes)}", look, 60)


def said(mesh: MeshUnderTest, method: str, path: str, **body: Any) -> dict[str, Any]:
    answer = mesh.http.request(method, f"{mesh.url}{path}", json=body)
    assert answer.is_success, answer.text
    return answer.json()


@pytest.mark.slow
@pytest.mark.sabotage("spread-unmarked")
def test_each_node_that_matches_has_one_and_two_who_change_it_at_once_lose_nothing(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path, workers=2)
    try:
        # given a model with one replica, and two nodes with a label
        mesh.up("--no-model")
        mesh.deploy("m", SPEC).raise_for_status()
        until("m serves", lambda: mesh.ready_replicas("m"), 60)
        for name in ("worker-1", "worker-2"):
            done(mesh, "nodes", "label", name, "fast=yes")

        # when it is wanted on all nodes that bear the label
        answer = said(mesh, "POST", LOCALAI, model_name="m", node_selector={"fast": "yes"}, spread_all=True)
        assert (2, True) == (answer["revision"], answer["spread_all"])
        serves_on(mesh, "worker-1", "worker-2")

        # then a node that joins gets one when it bears the label, too, and none can be called as the API's word
        token = new_token(mesh, "--auto-approve")
        with machine(mesh, "third", token, "--labels", "fast=no"):
            reaches(mesh, "third", "healthy")
            serves_on(mesh, "worker-1", "worker-2")
            done(mesh, "nodes", "label", "third", "fast=yes")
            serves_on(mesh, "third", "worker-1", "worker-2")
            # and one that bears it no more loses its own
            done(mesh, "nodes", "label", "third", "fast-")
            serves_on(mesh, "worker-1", "worker-2")
        assert mesh.ask("What now?", "m")

        # when two change different fields at once: neither is lost, and what nobody named stays
        said(mesh, "PATCH", "/api/scheduling/m", spread_all=False, max_replicas=4)
        changes: tuple[dict[str, Any], ...] = ({"min_replicas": 2}, {"node_selector": {"fast": "yes", "!old": ""}})
        with ThreadPoolExecutor(2) as at_once:
            for each in [at_once.submit(said, mesh, "PATCH", "/api/scheduling/m", **body) for body in changes]:
                each.result()
        shown = mesh.http.get(f"{mesh.url}{LOCALAI}/m").json()
        assert (2, 4, False) == (shown["min_replicas"], shown["max_replicas"], shown["spread_all"])
        assert {"fast": "yes", "!old": ""} == shown["node_selector"]

        # and what routing has not is refused by name
        not_yet = mesh.http.put(f"{mesh.url}{LOCALAI}/m", json={"route_policy": "prefix_cache"})
        assert (400, True) == (not_yet.status_code, "route_policy" in not_yet.json()["detail"])
        # when nobody is to have said anything: one replica, on any node
        said(mesh, "DELETE", f"{LOCALAI}/m")
        until("one is left", lambda: len(on(mesh)) == 1, 60)
        assert 1 == len(mesh.http.get(f"{mesh.url}/api/scheduling").json()["items"])
    finally:
        mesh.close()
