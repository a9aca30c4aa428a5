"""A model that no machine holds runs over three: where a rank dies all start again, where a node is lost it moves."""

from pathlib import Path
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest, until

GB = 10**9
BIG = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "engine_args": {"memory_bytes": 60 * GB, "ms_per_token": 1},
}
WORKERS = ("worker-1", "worker-2", "worker-3", "worker-4")


@pytest.mark.slow
@pytest.mark.sabotage("a-rank-alone")
def test_a_group_over_three_nodes_answers_starts_again_whole_and_is_placed_anew_when_a_node_is_lost(
    tmp_path: Path,
) -> None:
    with MeshUnderTest(tmp_path, workers=4, WEFT_SIMULATE_GPUS="24GB:nvidia", WEFT_START_GRACE="5") as mesh:
        # given four machines with an accelerator of 24 GB each, and a model of 60 GB
        until("all accelerators are told", lambda: len(cards(mesh)) == 4, 60)
        # then what no machine could give is refused when it is asked for
        refused = mesh.weft("deploy", "simulated", "--name", "wide", "--tensor-parallel", "2")
        assert "needs 2 devices" in refused.stderr
        assert "the fleet has 1 at most" in refused.stderr
        # and what was chosen is taken
        assert 0 == mesh.weft("deploy", "simulated", "--name", "small", "--gpu", "worker-4:0").returncode
        (small,) = mesh.ready_replicas("small")
        assert "worker-4" == small["node_name"]
        # when it is deployed
        assert 201 == mesh.deploy("big", BIG).status_code
        # then it lies on three machines, a third on each, and answers
        first = ready(mesh)
        nodes = {member["node"]: member["rank"] for member in first["members"]}
        assert [0, 1, 2] == sorted(nodes.values())
        assert {20 * GB} == {device["bytes"] for member in first["members"] for device in member["devices"]}
        assert "several nodes" in mesh.weft("explain", first["id"]).stdout
        assert mesh.ask("How are you?", "big")
        # when a follower's process is killed
        before = ranks(mesh, first["id"])
        assert 3 == len(before)
        follower = next(name for name in before if nodes[node_id(mesh, name)] == 1)
        before[follower].kill()
        # then all ranks start again under the next epoch, where they are, and it answers again
        (restarted,) = until("the group starts again", lambda: mesh.facts("replica", "restarted"), 30)
        assert 2 == restarted["fact"]["epoch"]
        assert f"rank 1 on {follower} ended" in restarted["fact"]["why"]
        again = until("all ranks are others", lambda: others(mesh, first["id"], before), 60)
        assert before.keys() == again.keys()
        assert first["members"] == ready(mesh)["members"]
        assert mesh.ask("How are you?", "big")
        assert 1 == len(mesh.facts("replica", "restarted"))
        # when a whole machine of the group is lost
        assert 0 == mesh.weft("hold", follower).returncode
        for process in (*mesh.agents(follower), *mesh.hosts(follower)):
            process.kill()
        mesh.kill(follower)
        # then the whole group is placed anew, on the three that are left
        second = until("another group is ready", lambda: [r for r in groups(mesh) if r["id"] != first["id"]], 90)[0]
        assert 3 == len(second["members"])
        assert node_id(mesh, follower) not in {member["node"] for member in second["members"]}
        assert mesh.ask("How are you?", "big")


def groups(mesh: MeshUnderTest) -> list[dict[str, Any]]:
    return mesh.ready_replicas("big")


def ready(mesh: MeshUnderTest) -> dict[str, Any]:
    return until("the group is ready", lambda: groups(mesh), 60)[0]


def node_id(mesh: MeshUnderTest, name: str) -> str:
    return next(node["id"] for node in mesh.status()["nodes"] if node["name"] == name)


def cards(mesh: MeshUnderTest) -> list[dict[str, Any]]:
    """All accelerators that nodes report."""
    hardware: list[dict[str, Any]] = [node["hardware"] for node in mesh.status()["nodes"] if node.get("hardware")]
    return [device for each in hardware for device in each["devices"] if device["vendor"] != "cpu"]


def ranks(mesh: MeshUnderTest, replica: str) -> dict[str, Any]:
    """The group's processes, by worker."""
    return {
        worker: host
        for worker in WORKERS
        for host in mesh.hosts(worker)
        if any(word.endswith(f"{replica}.json") for word in host.cmdline())
    }


def others(mesh: MeshUnderTest, replica: str, before: dict[str, Any]) -> dict[str, Any] | None:
    """The group's processes once there are as many and none is of those before."""
    now = ranks(mesh, replica)
    fresh = len(now) == len(before) and not {each.pid for each in now.values()} & {p.pid for p in before.values()}
    return now if fresh and groups(mesh) else None
