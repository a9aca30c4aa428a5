"""Everything stopped and started again on the same state; and nothing left behind when the launcher is killed."""

from pathlib import Path

import pytest
from weft_testing.story import MeshUnderTest, until


@pytest.mark.sabotage("retire-at-stop")
@pytest.mark.slow
def test_the_same_nodes_models_and_replicas_come_back(shaken_mesh: MeshUnderTest) -> None:
    mesh = shaken_mesh
    # given
    mesh.deploy("sim", {"source": {"kind": "simulated"}, "engine": "simulated"}).raise_for_status()
    until("both serve", lambda: len(serving(mesh)) == 2, 60)
    before, served = identities(mesh), serving(mesh)
    assert served <= before["replicas"]
    # when all is stopped in order
    mesh.down()
    # then nothing is left running
    until("all processes are gone", lambda: not mesh.processes())
    # and the next start brings the same back
    mesh.up()
    until("all replicas are ready", lambda: serving(mesh) == served, 60)
    assert before == identities(mesh)
    assert "Paris" in mesh.ask()


def serving(mesh: MeshUnderTest) -> set[str]:
    """The replicas of the two models that are ready."""
    return {replica["id"] for replica in mesh.ready_replicas() + mesh.ready_replicas("sim")}


def identities(mesh: MeshUnderTest) -> dict[str, set[str]]:
    status = mesh.status()
    return {kind: {each["id"] for each in status[kind]} for kind in ("nodes", "models", "replicas")}


@pytest.mark.slow
@pytest.mark.sabotage("no-lifeline")
def test_a_killed_launcher_leaves_nothing_running_and_the_next_one_starts(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path)
    mesh.up()
    try:
        assert len(mesh.processes()) > 8
        mesh.kill_launcher()
        until("all processes are gone", lambda: not mesh.processes(), 60)
        mesh.up()
        assert "Paris" in mesh.ask()
    finally:
        mesh.close()


@pytest.mark.sabotage("no-state-lock")
def test_a_second_launcher_on_the_same_state_is_told_who_holds_it(calm_mesh: MeshUnderTest) -> None:
    first = calm_mesh.run_file()["pid"]
    second = calm_mesh.weft("up", "--state", str(calm_mesh.state))
    assert 0 != second.returncode
    assert f"{calm_mesh.state} is in use" in second.stdout + second.stderr
    assert f"process {first}" in second.stdout + second.stderr
    # and the first has not noticed
    assert first == calm_mesh.run_file()["pid"]
    assert "Paris" in calm_mesh.ask()
