"""What only real accelerators can show. Each test says in its name what it checks; see README.md beside it."""

import os
import signal
from typing import Any

import psutil
import pytest
import weft_tiny
from weft_testing.story import MeshUnderTest, until

from .conftest import MIB, Seen, seen

INSTALL_S = 1800.0
"""vLLM for CUDA is some 10 GB."""
GIVEN_BACK = 512 * MIB
"""What a driver may keep of an ended process for a moment, and what others take meanwhile."""
QUESTIONS = [
    f"What is the capital of {country}?"
    for country in ("France", "Peru", "Japan", "Kenya", "Norway", "Chile", "Egypt", "Cuba", "Nepal", "Spain")
]

pytestmark = pytest.mark.slow


def reported(mesh: MeshUnderTest) -> list[dict[str, Any]]:
    """The worker's accelerators, as the mesh knows them."""
    node = mesh.http.get(f"{mesh.url}/api/nodes/worker-1").json()
    return [each for each in node["hardware"]["devices"] if each["vendor"] == "nvidia"]


def deployed(mesh: MeshUnderTest, name: str, **fields: Any) -> dict[str, Any]:
    """The ready replica of the built-in model's safetensors on an accelerator, by vLLM, and what it claims."""
    spec = {
        "source": {"kind": "path", "path": str(weft_tiny.folder())},
        "engine": "vllm",
        "selector": {"gpu.vendor": "nvidia"},
        "engine_args": {"dtype": "float32", "enforce_eager": True},
        **fields,
    }
    mesh.deploy(name, spec).raise_for_status()
    (replica,) = until(f"{name} is ready", lambda: mesh.ready_replicas(name), INSTALL_S)
    (placed,) = (e["fact"] for e in mesh.facts("replica", "placed") if e["key"] == replica["id"])
    return {**replica, "devices": placed["members"][0]["devices"]}


def device_of(mesh: MeshUnderTest, replica: dict[str, Any]) -> Seen:
    """The first device that a replica claims, as the vendor's tool knows it."""
    index = replica["devices"][0]["index"]
    (uuid,) = (each["uuid"] for each in reported(mesh) if each["index"] == index)
    return next(each for each in seen() if each.uuid == uuid)


def test_every_device_is_reported_with_the_uuid_and_the_memory_that_the_vendors_tool_tells(
    mesh: MeshUnderTest,
) -> None:
    found = {each["uuid"]: each for each in reported(mesh)}
    told = {each.uuid: each for each in seen()}
    assert told.keys() == found.keys()
    for uuid, device in found.items():
        assert abs(device["memory"] - told[uuid].memory) <= 0.02 * told[uuid].memory
        assert device["driver"]
        assert device["compute_capability"]


def test_vllm_on_a_device_answers_greedily_as_llama_cpp_on_the_processor_and_stays_within_its_claim(
    mesh: MeshUnderTest,
) -> None:
    # given the same weights on the processor
    until("tiny answers", mesh.ready_replicas, 120)
    expected = [mesh.ask(question, temperature=0) for question in QUESTIONS]
    before = {each.uuid: each.used for each in seen()}
    # when they are served from a device, by an engine that was not installed
    replica = deployed(mesh, "tiny-vllm")
    # then it says the same
    assert expected == [mesh.ask(question, "tiny-vllm", temperature=0) for question in QUESTIONS]
    # and the device holds no more for it than it claims
    device = device_of(mesh, replica)
    assert device.used - before[device.uuid] <= replica["devices"][0]["bytes"]


def test_a_killed_engine_gives_its_memory_back_and_is_there_again(mesh: MeshUnderTest) -> None:
    replica = deployed(mesh, "tiny-vllm")
    device = device_of(mesh, replica)
    (host,) = (each for each in mesh.hosts() if replica["id"] in " ".join(each.cmdline()))
    family = [host, *host.children(recursive=True)]
    os.kill(host.pid, signal.SIGKILL)
    until("its processes are gone", lambda: not any(map(psutil.Process.is_running, family)), 60)

    def again() -> bool:
        now = mesh.ready_replicas("tiny-vllm")
        return bool(now) and now[0]["incarnation"] != replica["incarnation"]

    until("it serves again", again, 300)
    now = next(each for each in seen() if each.uuid == device.uuid)
    assert now.used <= device.used + GIVEN_BACK


def test_two_replicas_that_fill_a_device_each_see_one_device_each(mesh: MeshUnderTest) -> None:
    if len(seen()) < 2:
        pytest.skip("needs two devices")
    args = {"dtype": "float32", "enforce_eager": True, "gpu_memory_utilization": 0.8}
    first = deployed(mesh, "first", engine_args=args)
    second = deployed(mesh, "second", engine_args=args)
    assert first["devices"][0]["index"] != second["devices"][0]["index"]
    assert device_of(mesh, first).uuid != device_of(mesh, second).uuid
