"""What a machine has, says, keeps to itself and is given: accelerators from its report to a replica's claim."""

import json
import re
from typing import Any

import pytest
from weft_testing.machine import done, machine, new_token, node, reaches
from weft_testing.story import MeshUnderTest, until

pytestmark = pytest.mark.slow
SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}


@pytest.mark.sabotage("every-device")
def test_a_machines_accelerators_are_shown_labelled_chosen_budgeted_and_claimed(mesh: MeshUnderTest) -> None:
    made_up = "2x80GB:nvidia,24GB:amd"
    kept = ("--simulate-gpus", made_up, "--devices", "!amd", "--vram-budget", "50%")
    with machine(mesh, "rack", new_token(mesh, "--auto-approve"), *kept):
        # given a machine with three accelerators, of which it gives two, and of these half of the memory
        reaches(mesh, "rack", "healthy")
        rack = until("it has reported", lambda: found if (found := node(mesh, "rack")).get("hardware") else None, 60)
        cards = [each for each in rack["hardware"]["devices"] if each["vendor"] != "cpu"]
        assert [("nvidia", 80 * 10**9, 40 * 10**9)] * 2 == [(c["vendor"], c["memory"], c["budget"]) for c in cards]
        # then its labels say so, and people see it
        assert ("nvidia", "80GB+", "rack") == tuple(rack["labels"][k] for k in ("gpu.vendor", "gpu.vram", "node.name"))
        assert "2 × simulated nvidia 80GB" in done(mesh, "nodes")
        # when a model of 30 GB goes where the label is, twice, and then a third time
        large = {**SIMULATED, "selector": {"gpu.vendor": "nvidia"}, "engine_args": {"memory_bytes": 30 * 10**9}}
        mesh.deploy("large", {**large, "min_replicas": 3, "max_replicas": 3})
        until("two have a place", lambda: len(claims(mesh)) == 2, 60)
        # then each has a card of its own, and the third waits for what the budget leaves
        assert {str(each["index"]) for each in cards} == set(claims(mesh))
        assert all(30 * 10**9 <= claimed <= 40 * 10**9 for claimed in claims(mesh).values())
        waits = until("one has no place", lambda: unplaceable(mesh, "large"))
        assert re.search(r"within (its|their) VRAM budget", done(mesh, "explain", waits[0]))
        # and gets one as soon as an admin gives more of each card
        done(mesh, "nodes", "vram-budget", "rack", "90%")
        until("all three are ready", lambda: len(mesh.ready_replicas("large")) == 3, 60)
        # and it holds after the worker's own word comes again
    with machine(mesh, "rack", new_token(mesh), "--simulate-gpus", made_up, "--vram-budget", "10%"):
        back = until("all its cards are told", lambda: four if len(four := devices(mesh)) == 4 else None, 60)
        assert 8 * 10**9 == back[1]["budget"]
        assert "90%" == node(mesh, "rack")["caps"]["vram_budget"]


@pytest.mark.sabotage("every-visible-device")
def test_an_engine_is_told_what_it_claims_and_sees_those_devices_alone(mesh: MeshUnderTest) -> None:
    # given machines of two vendors
    with (
        machine(mesh, "green", new_token(mesh, "--auto-approve"), "--simulate-gpus", "2x80GB:nvidia"),
        machine(mesh, "red", new_token(mesh, "--auto-approve"), "--simulate-gpus", "2x24GB:amd"),
    ):
        reaches(mesh, "green", "healthy")
        reaches(mesh, "red", "healthy")
        # when a model takes most of each card of the one, and another of the other's
        for vendor, size in (("nvidia", 50 * 10**9), ("amd", 20 * 10**9)):
            spec = {**SIMULATED, "selector": {"gpu.vendor": vendor}, "engine_args": {"memory_bytes": size}}
            mesh.deploy(f"of-{vendor}", {**spec, "min_replicas": 2, "max_replicas": 2})
        ready = {
            vendor: until(f"two of {vendor} are ready", lambda v=vendor: both(mesh, f"of-{v}"), 60)
            for vendor in ("nvidia", "amd")
        }
        # then each engine was told one card with the bytes that the mesh counts, and sees no other, in its vendor's way
        told = {vendor: [claim_in_log(mesh, each) for each in ready[vendor]] for vendor in ready}
    seen = {vendor: [said["environment"] for said in told[vendor]] for vendor in told}
    assert {"SIM-nvidia-0", "SIM-nvidia-1"} == {each["CUDA_VISIBLE_DEVICES"] for each in seen["nvidia"]}
    assert {"0", "1"} == {each["ROCR_VISIBLE_DEVICES"] for each in seen["amd"]}
    assert not any("CUDA_VISIBLE_DEVICES" in each for each in seen["amd"])
    assert [50 * 10**9] * 2 == [device["bytes"] for said in told["nvidia"] for device in said["devices"]]
    assert [20 * 10**9] * 2 == [device["bytes"] for said in told["amd"] for device in said["devices"]]


def both(mesh: MeshUnderTest, model: str) -> list[str] | None:
    ready = [each["id"] for each in mesh.ready_replicas(model)]
    return ready if len(ready) == 2 else None


def claim_in_log(mesh: MeshUnderTest, replica: str) -> dict[str, Any]:
    """What an engine's log says of its claim."""
    lines = done(mesh, "logs", replica).splitlines()
    [said] = [line for line in map(json.loads, lines) if line.get("event") == "claims"]
    return said


def devices(mesh: MeshUnderTest) -> list[dict[str, Any]]:
    """The machine's devices as it reported them, the processor first."""
    return node(mesh, "rack")["hardware"]["devices"]


def claims(mesh: MeshUnderTest) -> dict[str, int]:
    """Bytes that are claimed of each of the machine's devices."""
    return node(mesh, "rack")["claims"]


def unplaceable(mesh: MeshUnderTest, model: str) -> list[str]:
    return [r["id"] for r in mesh.replicas() if r["model_name"] == model and r["state"] == "unplaceable"]
