"""What a machine has, says, keeps to itself and is given: accelerators from its report to a replica's claim."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import gguf
import pytest
import weft_tiny
from weft_testing.engine_environment import engine_environment
from weft_testing.machine import done, machine, new_token, node, reaches
from weft_testing.story import MeshUnderTest, until

pytestmark = pytest.mark.slow
SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}
LAYERED = Path(__file__).parents[1] / "packages" / "layered" / "weft_layered"
MIB = 1 << 20


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
@pytest.mark.sabotage("a-layer-too-many")
def test_an_engine_is_told_what_it_claims_and_sees_those_devices_alone(mesh: MeshUnderTest) -> None:
    # given machines of two vendors, one with an engine that divides a model's layers
    backends = engine_environment(mesh.folder, LAYERED, "layered")
    green = ("--simulate-gpus", "2x80GB:nvidia")
    with (
        machine(mesh, "green", new_token(mesh, "--auto-approve"), *green, WEFT_BACKENDS=str(backends)),
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
        # and when two of a model's three layers are to lie on a card, as its engine counts them
        before = node(mesh, "green")["claims"]
        tell(mesh, backends / "layered")
        divided = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "layered", "engine_args": {"gpu_layers": 2}}
        mesh.deploy("divided", {**divided, "context_tokens": 64, "concurrency": 2}).raise_for_status()
        (replica,) = until("it is ready", lambda: mesh.ready_replicas("divided"), 60)
        # then card and machine are claimed by the sizes that stand in the file, the engine is told both, and all see it
        on_card, on_machine = divided_claim(context=2 * 64)
        given = json.loads(mesh.ask(model="divided"))
        assert {"gpu_layers": 2} == given["engine_args"]
        assert {"nvidia": on_card, "cpu": on_machine} == {each["vendor"]: each["bytes"] for each in given["devices"]}
        shown = next(r for r in json.loads(done(mesh, "status", "--json"))["replicas"] if r["id"] == replica["id"])
        machine_s, card_s = sorted(shown["devices"], key=lambda each: each["claimed"], reverse=True)
        assert (on_machine, on_card) == (machine_s["claimed"], card_s["claimed"])
        assert (True, False) == tuple("simulated nvidia 80GB" in each["device"] for each in (card_s, machine_s))
        after = node(mesh, "green")["claims"]
        assert on_card + on_machine == sum(after.values()) - sum(before.values())
    seen = {vendor: [said["environment"] for said in told[vendor]] for vendor in told}
    assert {"SIM-nvidia-0", "SIM-nvidia-1"} == {each["CUDA_VISIBLE_DEVICES"] for each in seen["nvidia"]}
    assert {"0", "1"} == {each["ROCR_VISIBLE_DEVICES"] for each in seen["amd"]}
    assert not any("CUDA_VISIBLE_DEVICES" in each for each in seen["amd"])
    assert [50 * 10**9] * 2 == [device["bytes"] for said in told["nvidia"] for device in said["devices"]]
    assert [20 * 10**9] * 2 == [device["bytes"] for said in told["amd"] for device in said["devices"]]


def both(mesh: MeshUnderTest, model: str) -> list[str] | None:
    ready = [each["id"] for each in mesh.ready_replicas(model)]
    return ready if len(ready) == 2 else None


def tell(mesh: MeshUnderTest, environment: Path) -> None:
    """The mesh, of the engine that an environment has."""
    command = [environment / "bin" / "python", "-m", "weft_engine.installed", environment.name]
    said = subprocess.run(command, capture_output=True, check=True, timeout=60)
    mesh.http.post(f"{mesh.url}/api/engine-profiles", json=json.loads(said.stdout)["profile"]).raise_for_status()


def divided_claim(context: int) -> tuple[int, int]:
    """Bytes of the card and of the machine for the built-in model with two of its three layers on a card: the output,
    which this model makes of the embeddings, so that they lie in both places, and the last block."""
    reader: Any = gguf.GGUFReader(weft_tiny.gguf_path())
    size = {tensor.name: int(tensor.n_bytes) for tensor in reader.tensors}
    last = sum(each for name, each in size.items() if name.startswith("blk.2."))
    output_norm, embeddings = size["output_norm.weight"], size["token_embd.weight"]
    cache = 2 * 2 * 64 * 2 * context  # keys and values of two heads of 64 in 16 bits, of one layer
    card, rest = last + output_norm + embeddings, sum(size.values()) - last - output_norm
    assert (3, True) == (len({name.split(".")[1] for name in size if name.startswith("blk.")}), rest > embeddings)
    return card + card // 2 + cache + 3 * MIB, rest + rest // 2 + 2 * cache + 5 * MIB


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
