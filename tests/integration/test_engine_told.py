"""An engine that Weft doesn't come with: an admin tells the running mesh of it, and a worker that has it serves it."""

import json
from pathlib import Path
from typing import Any

import pytest
from weft_testing.engine_environment import engine_environment, profile_in
from weft_testing.story import MeshUnderTest, until

ECHO = Path(__file__).parents[1] / "packages" / "echo" / "weft_echo"
SPEC = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "echo", "context_tokens": 64, "concurrency": 2}


def tell(mesh: MeshUnderTest, profile: dict[str, Any]) -> str:
    """The digest of the profile by which the mesh knows the engine now."""
    said = mesh.http.post(f"{mesh.url}/api/engine-profiles", json=profile)
    assert 201 == said.status_code, said.text
    return said.json()["digest"]


def refusals(mesh: MeshUnderTest) -> list[dict[str, int]]:
    """Why replicas found no place, from the log."""
    return [each["fact"]["receipt"]["refusals"] for each in mesh.facts("replica", "unplaceable")]


@pytest.mark.slow
@pytest.mark.sabotage("engine-of-another-profile")
def test_an_engine_that_an_admin_tells_of_is_placed_where_its_profile_is_and_serves(tmp_path: Path) -> None:
    environment = engine_environment(tmp_path, ECHO, "echo")
    profile = profile_in(environment, "echo")
    with MeshUnderTest(tmp_path, WEFT_BACKENDS=str(environment)) as mesh:
        # given a mesh whose worker has the engine, and that knows nothing of it
        refused = mesh.deploy("parrot", SPEC)
        assert 400 == refused.status_code
        assert "must be one of llama.cpp, openai, simulated, vllm" in refused.json()["detail"]

        # when it is told of it by other figures than the worker's, and a model is deployed
        other = tell(mesh, profile | {"claim": profile["claim"] | {"slack": 0.0}})
        assert 201 == mesh.deploy("parrot", SPEC).status_code
        # then the worker is no candidate, and that is said
        reason = {"has another profile of echo than the mesh": 1}
        until("it has no place, or one", lambda: reason in refusals(mesh) or mesh.ready_replicas("parrot"), 90)
        assert [] == mesh.ready_replicas("parrot")

        # when it is told of the worker's own, as an admin would
        file = tmp_path / "echo.json"
        file.write_text(json.dumps(profile))
        told = mesh.weft("engines", "add", str(file), "--json")
        assert 0 == told.returncode, told.stderr
        digest = json.loads(told.stdout)["digest"]
        assert other != digest
        # then it serves, with what the profile's figures claim
        (replica,) = until("it serves", lambda: mesh.ready_replicas("parrot"), 60)
        assert "warp and weft" == mesh.ask("warp and weft", "parrot")
        (placed,) = (e["fact"] for e in mesh.facts("replica", "placed") if e["key"] == replica["id"])
        weights = mesh.facts("model", "spec_accepted")[-1]["fact"]["spec"]["weights"]
        claim = weights["weight_bytes"] * 3 // 2 + weights["kv_bytes_per_token"] * 64 * 2 + (3 << 20)
        assert [{"index": 0, "bytes": claim}] == placed["members"][0]["devices"]
        node = mesh.http.get(f"{mesh.url}/api/nodes/worker-1").json()
        assert digest in [each["profile"] for each in node["backends"] if each["engine"] == "echo"]
        # and can't be withdrawn from under its model
        said = mesh.http.delete(f"{mesh.url}/api/engine-profiles/echo")
        assert (409, "parrot would be left without an engine: delete what uses it first") == (
            said.status_code,
            said.json()["detail"],
        )
