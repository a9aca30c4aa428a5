"""The life of an installed engine: ahead of need, in use, upgraded beside what runs, and gone when nothing needs it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest, until
from weft_testing.wheels import wheels_of_installed
from weft_worker_agent.outbound.backends.host_code import requirements

from .echo_engine import echo_entry, echo_wheel

SPEC = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "echo", "context_tokens": 64, "concurrency": 2}
INSTALL_S = 120.0


def add_recipe(mesh: MeshUnderTest, version: str, *more: str) -> None:
    """The catalogue's entry of the echo, in this version; `more` is required, too."""
    said = mesh.weft("backends", "add", str(echo_entry(mesh.folder, version, *more)))
    assert 0 == said.returncode, said.stderr


def made(mesh: MeshUnderTest) -> dict[str, dict[str, Any]]:
    """The environments that the first worker made for the echo, by version."""
    said = mesh.weft("backends", "--json")
    assert 0 == said.returncode, said.stderr
    (here,) = [each for each in json.loads(said.stdout) if each["node_name"] == "worker-1"]
    return {each["version"]: each for each in here["environments"] if each["engine"] == "echo"}


@pytest.mark.slow
@pytest.mark.sabotage("backend-left-behind")
@pytest.mark.sabotage("upgrade-fails-the-model")
def test_an_engine_is_installed_ahead_upgraded_beside_what_runs_and_removed_when_nothing_needs_it(
    tmp_path: Path,
) -> None:
    # given an engine that a worker installed before anything needs it
    wheels, folder = tmp_path / "wheels", tmp_path / "backends"
    wheels_of_installed(wheels, requirements())
    echo_wheel(wheels, "1.0")
    echo_wheel(wheels, "2.0")
    with MeshUnderTest(
        tmp_path, WEFT_INSTALL_OFFLINE=str(wheels), WEFT_INSTALL_FOLDER=str(folder), WEFT_INSTALL_KEEP="3"
    ) as mesh:
        add_recipe(mesh, "1.0")
        said = mesh.weft("backends", "install", "echo", "--node", "worker-1")
        assert 0 == said.returncode, said.stderr
        assert "worker-1 is to have echo 1.0 for cpu" in said.stdout
        until("it is there", lambda: made(mesh), INSTALL_S)
        one = made(mesh)["1.0"]
        assert one["bytes"] > 1_000_000
        assert ([], False) == (one["used_by"], one["unused_since"] is None)

        # when a model needs it
        assert 201 == mesh.deploy("parrot", SPEC).status_code
        first = until("it serves", lambda: mesh.ready_replicas("parrot"), 60)[0]["id"]
        # then nothing was installed for that, and what is used can't be removed
        assert not mesh.facts("run", "installing")
        assert [first] == made(mesh)["1.0"]["used_by"]
        said = mesh.weft("backends", "uninstall", "echo", "--node", "worker-1")
        assert 1 == said.returncode
        assert first in said.stderr

        # when replicas are told to move to a version that can't be installed
        add_recipe(mesh, "1.5", "weft-echo==2.0")
        assert 0 == mesh.weft("backends", "upgrade", "echo").returncode
        # then that is named, the model goes on in what it has, and so does what is added to it
        until("the upgrade is given up", lambda: "its engine was not upgraded" in mesh.weft("status").stdout, 60)
        assert [first] == [each["id"] for each in mesh.ready_replicas("parrot")]
        assert "parrot stays in the engine that it has: echo 1.5" in mesh.weft("explain", "parrot").stdout
        assert 201 == mesh.deploy("parrot", {**SPEC, "min_replicas": 2, "max_replicas": 2}).status_code
        until("two serve", lambda: len(mesh.ready_replicas("parrot")) == 2, 60)
        assert 2 == len(made(mesh)["1.0"]["used_by"])
        assert 201 == mesh.deploy("parrot", SPEC).status_code
        until("one serves", lambda: len(mesh.ready_replicas("parrot")) == 1, 60)
        (first,) = [each["id"] for each in mesh.ready_replicas("parrot")]

        # when the catalogue has another version, and replicas are told to move to it
        add_recipe(mesh, "2.0")
        assert [first] == [each["id"] for each in mesh.ready_replicas("parrot")]
        said = mesh.weft("backends", "upgrade", "echo")
        assert 0 == said.returncode, said.stderr

        # then another serves from the new one, and every question meanwhile was answered
        def moved() -> bool:
            assert "warp and weft" == mesh.ask("warp and weft", "parrot")
            there = made(mesh)
            ready = [each["id"] for each in mesh.ready_replicas("parrot")]
            return "2.0" in there and ready == there["2.0"]["used_by"] and first not in ready

        until("it has moved", moved, INSTALL_S)
        # and what nothing needs any more goes, while what was asked for ahead is now the new one
        until("the old one is gone", lambda: set(made(mesh)) == {"2.0"}, 60)
        until("its folder, too", lambda: [path.name[:9] for path in folder.glob("echo-*")] == ["echo-2.0-"])
        assert "warp and weft" == mesh.ask("warp and weft", "parrot")

        # when the model goes, and the engine is taken off the node
        assert 0 == mesh.weft("remove", "parrot").returncode
        until("nothing uses it", lambda: not made(mesh)["2.0"]["used_by"], 60)
        until("it may go", lambda: _done(mesh.weft("backends", "uninstall", "echo", "--node", "worker-1")), 60)
        # then nothing of it is left
        until("it is gone", lambda: not made(mesh) and not [*folder.glob("echo-*")], 60)
        assert not [path for path in folder.iterdir() if path.name.startswith((".making-", ".removing-"))]


def _done(said: subprocess.CompletedProcess[str]) -> bool:
    return said.returncode == 0
