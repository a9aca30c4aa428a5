"""How replicas are placed is told while the mesh runs: the next one goes by it, and its receipt says so."""

from pathlib import Path
from typing import Any

import pytest
from weft_testing.machine import done
from weft_testing.story import MeshUnderTest, until

GB = 10**9
HEAP = """
name: heap
apart: no
weights:
  binpack: 1
"""


def deploy(mesh: MeshUnderTest, name: str, size: int, **more: Any) -> list[dict[str, Any]]:
    """Deploy without a word of a policy; the receipts of its placements, each with `node`, once all are placed."""
    replicas = more.get("min_replicas", 1)
    spec = {"source": {"kind": "simulated"}, "engine": "simulated", "engine_args": {"memory_bytes": size * GB}, **more}
    model = mesh.deploy(name, spec)
    assert 201 == model.status_code, model.text
    return placed(mesh, model.json()["model"], replicas)


def placed(mesh: MeshUnderTest, model: str, replicas: int) -> list[dict[str, Any]]:
    """The receipts of a model's placements, each with the `node`."""

    def all_of_them() -> list[dict[str, Any]] | None:
        facts = [each["fact"] for each in mesh.facts("replica", "placed") if each["fact"]["model"] == model]
        return facts if len(facts) == replicas else None

    found = until(f"{replicas} of {model} are placed", all_of_them)
    return [each["receipt"] | {"node": each["members"][0]["node"]} for each in found]


@pytest.mark.slow
@pytest.mark.sabotage("policy-unread")
def test_a_policy_that_is_told_and_chosen_says_where_the_next_replica_goes(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path, workers=2, WEFT_SIMULATE_GPUS="1x80GB:nvidia")
    try:
        # given two workers, each with a device, and a model on one of them
        mesh.up("--no-model")
        until("both have told their devices", lambda: devices(mesh) == 2)
        [first] = deploy(mesh, "first", 30)
        # then the mesh's own policy, balanced, has another model go to the idle one
        [second] = deploy(mesh, "second", 10)
        assert first["node"] != second["node"]
        assert first["policy"].startswith("name=balanced ")

        # when a policy is told by a file, and chosen as the mesh's own
        before = {part: mesh.pid(part) for part in ("scheduler", "gateway")}
        file = tmp_path / "heap.yaml"
        file.write_text(HEAP)
        done(mesh, "policies", "set", str(file))
        done(mesh, "policies", "default", "heap")

        # then replicas of the next model go together to the fuller one, and each receipt names the policy
        both = deploy(mesh, "third", 10, min_replicas=2, max_replicas=2)
        assert [first["node"]] * 2 == [each["node"] for each in both]
        shown = mesh.http.get(f"{mesh.url}/api/policies/heap").json()
        assert {shown["digest"]} == {each["policy_digest"] for each in both}
        assert (True, "binpack") == (shown["default"], *[each for each, weight in shown["weights"].items() if weight])
        assert f"policy heap ({shown['digest']})" in done(mesh, "explain", "third")
        # and no part was started anew
        assert before == {part: mesh.pid(part) for part in before}

        # when a model names another: then it goes by that one, and the told one stays the mesh's own
        done(mesh, "deploy", "simulated", "--name", "fourth", "--replicas", "2", "--policy", "balanced", "--wait", "0")
        fourth = placed(mesh, mesh.http.get(f"{mesh.url}/api/models/fourth").json()["id"], 2)
        assert 2 == len({each["node"] for each in fourth})
        # and one that isn't there is refused with those that are, and the mesh's own can't be withdrawn
        refused = mesh.weft("deploy", "simulated", "--name", "fifth", "--policy", "heaps")
        assert (1, True) == (refused.returncode, "there is: balanced, binpack, spread, heap" in refused.stderr)
        kept = mesh.weft("policies", "withdraw", "heap")
        assert (1, True) == (kept.returncode, "heap is the mesh's own policy" in kept.stderr)
    finally:
        mesh.close()


def devices(mesh: MeshUnderTest) -> int:
    """How many nodes have told of a made-up device."""
    told: list[dict[str, Any]] = [node["hardware"] for node in mesh.status()["nodes"] if node.get("hardware")]
    return sum(any(each["vendor"] == "nvidia" for each in hardware["devices"]) for hardware in told)
