"""A worker that has nothing of an engine installs it when a replica needs it, and comes back by itself if it can't."""

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest
import weft_tiny
from weft_testing.hub_server import hub_server
from weft_testing.scripted_model import write_scripted_model
from weft_testing.story import MeshUnderTest, until
from weft_testing.vllm_environment import find_links
from weft_testing.wheels import wheels_of_installed, write_wheel
from weft_worker_agent.outbound.backends.host_code import requirements

from .parsed_answers import calls_stand_apart, thoughts_stand_apart

ECHO = Path(__file__).parents[1] / "packages" / "echo" / "weft_echo"
SPEC = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "echo", "context_tokens": 64, "concurrency": 2}
INSTALL_S = 600.0
ENTRY = """
profile:
  name: echo
  serves: [chat]
  formats: [gguf]
  vendors: [cpu]
  claim: {formula: header, slack: 0.5, overhead: 0, cpu_overhead: 3145728}
  resumes_greedy: true
  arguments: {times: {type: integer, least: 1, most: 3}}
  install: {package: weft-echo, adapter: "weft_echo.adapter:Echo"}
recipe:
  engine: echo
  variants:
    - vendor: cpu
      package: weft-echo
      version: "1.0"
      requirements: ["weft-echo==1.0"]
      disk: 50_000_000
"""


def echo_wheel(folder: Path) -> Path:
    """The package of an engine that Weft knows nothing of."""
    files = {f"weft_echo/{path.name}": path.read_text() for path in ECHO.glob("*.py")}
    entry = "[weft.engines]\necho = weft_echo.profile:PROFILE\n"
    return write_wheel(folder, "weft-echo", "1.0", files, entry_points=entry)


def backends(mesh: MeshUnderTest) -> dict[str, Any]:
    """What the first worker has and is getting, as the command line tells it."""
    said = mesh.weft("backends", "--json")
    assert 0 == said.returncode, said.stderr
    return next(each for each in json.loads(said.stdout) if each["node_name"] == "worker-1")


def uv_of(mesh: MeshUnderTest) -> list[psutil.Process]:
    """The installers that the first worker's agent runs."""
    found = (child for agent in mesh.agents() for child in agent.children(recursive=True))
    return [child for child in found if child.name() == "uv"]


def states(mesh: MeshUnderTest, model: str) -> list[str]:
    """Of a model's replicas. One that failed is said at once: nothing is waited for then."""
    failed = [each["fact"]["reason"] for each in mesh.facts("run", "failed")]
    assert [] == failed
    return [each["state"] for each in mesh.replicas() if each["model_name"] == model]


def under_way(mesh: MeshUnderTest, engine: str) -> list[dict[str, Any]]:
    """What the first worker says of how far an engine's install is."""
    return [each for each in backends(mesh)["installs"] if each["engine"] == engine]


def memory_of(mesh: MeshUnderTest, replica: str) -> list[dict[str, Any]]:
    """The devices that a replica claims, as far as it is told what it holds there."""
    replicas = json.loads(mesh.weft("status", "--json").stdout)["replicas"]
    (found,) = (each["devices"] for each in replicas if each["id"] == replica)
    return [each for each in found if each["used"] is not None]


def half_made(folder: Path) -> list[str]:
    return [path.name for path in folder.glob(".making-*")] if folder.exists() else []


@pytest.mark.slow
@pytest.mark.sabotage("backend-not-installed")
@pytest.mark.sabotage("unseen-progress")
def test_an_engine_is_installed_where_a_replica_needs_it_and_when_what_hinders_it_is_gone(tmp_path: Path) -> None:
    # given a worker that knows nothing of an engine, and packages that it can't read yet
    wheels, folder = tmp_path / "wheels", tmp_path / "backends"
    wheels_of_installed(wheels, requirements())
    wheel = echo_wheel(wheels)
    wheel.unlink()
    os.mkfifo(wheel)
    with MeshUnderTest(tmp_path, WEFT_INSTALL_OFFLINE=str(wheels), WEFT_INSTALL_FOLDER=str(folder)) as mesh:
        assert "echo" not in [each["engine"] for each in backends(mesh)["installed"]]
        entry = tmp_path / "echo.yaml"
        entry.write_text(ENTRY)
        said = mesh.weft("backends", "add", str(entry))
        assert 0 == said.returncode, said.stderr
        # when a model is deployed for it
        assert 201 == mesh.deploy("parrot", SPEC).status_code
        # then its replica is seen to wait for the install
        until("the installer runs", lambda: uv_of(mesh), 60)
        (install,) = until("it is listed", lambda: backends(mesh)["installing"])
        assert ("echo", "parrot") == (install["engine"], install["model_name"])
        # and how far that is, in the status, too
        (told,) = until("its phase is told", lambda: under_way(mesh, "echo"), 60)
        assert ("1.0", "cpu", "resolving", False) == tuple(told[k] for k in ("version", "vendor", "phase", "overdue"))
        until("the status says it", lambda: "installing echo: choosing packages" in mesh.weft("status").stdout)

        # when the agent is killed in the middle of it
        (uv,) = uv_of(mesh)
        (agent,) = mesh.agents()
        agent.kill()
        # then the installer ends with it, and the next agent begins again
        uv.wait(30)
        until("the next agent installs it", lambda: [one for one in uv_of(mesh) if one.pid != uv.pid], 60)

        # when the installer is killed, with the packages away
        away = tmp_path / "away"
        wheels.rename(away)
        for one in uv_of(mesh):
            one.kill()
        # then the reason is there, and nothing half made
        until("the reason is told", lambda: "No such file" in str(mesh.facts("run", "stopped")[-1:]), 60)
        until("nothing half made stays", lambda: not half_made(folder) or uv_of(mesh))

        # when they are there, and can't be read as before, so that the next try waits
        away.rename(wheels)
        # then the reason stands beside it
        ended = until("beside the next try", lambda: [i for i in backends(mesh)["installing"] if i["last_end"]], 180)
        assert "echo 1.0 could not be installed" in ended[0]["last_end"]

        # when they can be read
        wheel.unlink()
        echo_wheel(wheels)
        for one in uv_of(mesh):
            one.kill()
        # then it is installed by itself, loads, and answers
        until("it serves", lambda: mesh.ready_replicas("parrot"), 300)
        assert "warp and weft" == mesh.ask("warp and weft", "parrot")
        key = mesh.ready_replicas("parrot")[0]["id"]
        first = {
            phase: min(one["sequence"] for one in mesh.facts("run", phase) if one["key"].endswith(key))
            for phase in ("installing", "loading", "ready")
        }
        assert first["installing"] < first["loading"] < first["ready"]
        there = until("it is listed", lambda: [b for b in backends(mesh)["installed"] if b["engine"] == "echo"])
        assert ("1.0", ["cpu"]) == (there[0]["version"], there[0]["vendors"])
        assert [] == half_made(folder)
        # and nothing is said to be installed any more, but what the replica holds of what it claims
        until("no install is told", lambda: not under_way(mesh, "echo"), 60)
        (held,) = until("its memory is told", lambda: memory_of(mesh, key), 60)
        assert 0 < held["used"]
        assert 0 < held["claimed"]


@pytest.mark.slow
@pytest.mark.sabotage("backend-of-any-torch")
def test_a_worker_with_nothing_installs_vllm_and_answers_on_the_processor(tmp_path: Path) -> None:
    # given a worker whose folder of backends is empty, on a machine that says where torch for the processor lies
    folder = tmp_path / "backends"
    with (
        hub_server() as hub,
        MeshUnderTest(
            tmp_path,
            WEFT_INSTALL_FIND_LINKS=find_links(),
            WEFT_INSTALL_FOLDER=str(folder),
            WEFT_HUB=hub.url,
            WEFT_SOURCES_ALLOW="127.0.0.1",
            HF_HOME=str(tmp_path),
        ) as mesh,
    ):
        assert "vllm" not in [each["engine"] for each in backends(mesh)["installed"]]
        # when the built-in weights are deployed as safetensors
        spec: dict[str, Any] = {
            "source": {"kind": "path", "path": str(weft_tiny.folder())},
            "engine": "vllm",
            "context_tokens": 512,
            "concurrency": 16,
            "engine_args": {"dtype": "float32", "enforce_eager": True, "block_size": 32},
        }
        assert 201 == mesh.deploy("tiny-vllm", spec).status_code
        # then it is seen to be installed, to load, and to answer
        (install,) = until("it is installed", lambda: backends(mesh)["installing"], 60)
        assert ("vllm", "tiny-vllm") == (install["engine"], install["model_name"])
        seen: list[dict[str, Any]] = []

        def installed() -> bool:
            found = backends(mesh)
            seen.extend(each for each in found["installs"] if each["engine"] == "vllm")
            return any(each["engine"] == "vllm" for each in found["installed"])

        until("it is there", installed, INSTALL_S)
        # with phases and bytes on the way, and no more of either than there is
        assert {"fetching", "checking"} <= {each["phase"] for each in seen}
        assert any(each["package"] for each in seen)
        counted = [(each["fetched"], each["total"]) for each in seen if each["total"] is not None]
        assert any(0 < fetched for fetched, _ in counted)
        assert all(0 <= fetched <= total for fetched, total in counted)
        assert all(each["left_s"] is None or each["left_s"] > 0 for each in seen)
        until("it is ready", lambda: "ready" in states(mesh, "tiny-vllm"), INSTALL_S)
        assert "The capital of France is Paris." == mesh.ask(model="tiny-vllm", temperature=0)
        there = until("it is listed", lambda: [b for b in backends(mesh)["installed"] if b["engine"] == "vllm"])
        assert ("0.32.0", ["cpu"]) == (there[0]["version"], there[0]["vendors"])
        assert not [path for path in folder.rglob("torchvision") if path.is_dir()]

        # when it makes room for a model of a hub whose family thinks and calls tools in a form of its own
        assert 0 == mesh.weft("remove", "tiny-vllm").returncode
        family = {"tool_call_parser": "hermes", "reasoning_parser": "deepseek_r1"}
        files = write_scripted_model(tmp_path / "scripted").iterdir()
        hub.repository("o/scripted", {path.name: path.read_bytes() for path in files})
        spec["source"] = {"kind": "hf", "repository": "o/scripted"}
        assert 201 == mesh.deploy("scripted", {**spec, "engine_args": {**spec["engine_args"], **family}}).status_code
        until("it is ready", lambda: "ready" in states(mesh, "scripted"), INSTALL_S)
        # then clients get both apart, by vLLM's own parsers
        thoughts_stand_apart(mesh, "scripted")
        calls_stand_apart(mesh, "scripted")
