"""A mesh becomes what a file says, and stays so when it is said again."""

import json
from pathlib import Path
from typing import Any

import pytest
from weft_testing.machine import done
from weft_testing.story import MeshUnderTest, until

FLEET = """
models:
  - {source: simulated, name: first, engine_args: {memory_bytes: 1000}}
  - {source: simulated, name: second, context: 512}
aliases:
  - {name: either, models: {first: 3, second: 1}}
policies:
  - {name: heap, apart: "no", weights: {binpack: 1}}
default_policy: heap
"""


def told(mesh: MeshUnderTest, file: Path, *options: str) -> tuple[int, dict[str, str]]:
    """What a dry run finds: its status, and what would become of each thing."""
    said = mesh.weft("apply", str(file), "--dry-run", "--json", *options)
    changes: list[dict[str, Any]] = json.loads(said.stdout)["changes"]
    return said.returncode, {f"{each['kind']} {each['name']}": each["change"] for each in changes}


@pytest.mark.slow
@pytest.mark.sabotage("apply-compares-nothing")
def test_a_file_is_applied_once_and_the_second_time_changes_nothing(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path, workers=1)
    file = tmp_path / "fleet.yaml"
    try:
        # given a mesh with a model that somebody deployed by hand
        mesh.up("--no-model")
        done(mesh, "deploy", "simulated", "--name", "by-hand", "--wait", "0")

        # when a file is applied and waited for, then all that it names is there and answers
        file.write_text(FLEET)
        named = ("policy heap", "model first", "model second", "alias either")
        assert (2, dict.fromkeys(named, "add") | {"default policy heap": "change"}) == told(mesh, file)
        done(mesh, "apply", str(file), "--yes", "--wait", "60")
        assert mesh.ask("What now?", "either")

        # when it is applied again, nothing is asked of the mesh, and nobody has to say yes
        position = mesh.status()["log"]["position"]
        again = mesh.weft("apply", str(file))
        assert (0, "nothing to do") == (again.returncode, again.stdout.splitlines()[-1]), again.stderr
        requests = [each for each in mesh.events(position) if each["aggregate"].startswith("request.")]
        assert [] == requests
        assert 0 == told(mesh, file)[0]

        # when only a number changes, then nothing that runs moves, and its digest stays
        before = {each["id"] for each in mesh.ready_replicas("first")}
        file.write_text(FLEET.replace("name: first,", "name: first, replicas: 2,"))
        assert "change" == told(mesh, file)[1]["model first"]
        assert "~ model first: replicas 1 → 2" in done(mesh, "apply", str(file), "--yes", "--wait", "60")
        now = {each["id"] for each in mesh.ready_replicas("first")}
        assert (2, True) == (len(now), before < now)

        # when what a file can't mean is applied, each field is named, and nothing changes
        file.write_text("models: [{source: simulated, replicas: some, contxt: 1}]")
        wrong = mesh.weft("apply", str(file), "--yes")
        assert (1, ["models[0].replicas", "models[0].contxt"]) == (
            wrong.returncode,
            [line.split(": ")[-2] for line in wrong.stderr.splitlines()],
        )

        # when it is pruned, then what it doesn't name goes, and only then
        file.write_text(
            FLEET.replace("  - {name: either, models: {first: 3, second: 1}}\n", "").replace("aliases:", "aliases: []")
        )
        assert "by-hand" in {each["name"] for each in mesh.status()["models"]}
        pruned = done(mesh, "apply", str(file), "--prune", "--yes")
        assert "- alias either" in pruned
        assert "- model by-hand" in pruned
        until("by-hand is gone", lambda: {"first", "second"} == {each["name"] for each in mesh.status()["models"]})
        assert 0 == told(mesh, file, "--prune")[0]
    finally:
        mesh.close()
