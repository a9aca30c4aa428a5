"""What a mesh decided comes out again from its log: by the position, the policy and the seed of each receipt.

Every story's mesh is asked the same before it ends (`weft_testing.decisions_again`).
"""

import pytest
from weft_placement.verify import verify
from weft_testing.log_pages import commits
from weft_testing.story import MeshUnderTest, until

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}


@pytest.mark.sabotage("receipts-of-another-place")
def test_what_a_mesh_decided_comes_out_again_from_its_log(shaken_mesh: MeshUnderTest) -> None:
    # given a model that has its places, and one that no node holds
    mesh = shaken_mesh
    for name, args, replicas in (("again", {}, 3), ("again-too-large", {"memory_bytes": 1 << 50}, 1)):
        spec = SIMULATED | {"engine_args": args, "min_replicas": replicas, "max_replicas": replicas}
        mesh.http.post(f"{mesh.url}/api/models", json={"name": name, "spec": spec}).raise_for_status()
    try:
        until("one has its places", lambda: states(mesh, "again") == ["ready"] * 3)
        until("the other has none", lambda: states(mesh, "again-too-large") == ["unplaceable"])

        # when all of the log is computed again
        found = verify(commits(mesh.http, mesh.url))

        # then nothing comes out otherwise, and there was something to compute
        assert [] == found.mismatches
        assert found.decisions["placed"] >= 3
        assert found.decisions["unplaceable"] >= 1
    finally:
        for name in ("again", "again-too-large"):
            mesh.http.delete(f"{mesh.url}/api/models/{name}")


def states(mesh: MeshUnderTest, model: str) -> list[str]:
    said = mesh.http.get(f"{mesh.url}/api/models/{model}").raise_for_status().json()
    return [each["state"] for each in said["replicas"]]
