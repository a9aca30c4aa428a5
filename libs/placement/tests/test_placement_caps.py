"""What an admin, or the worker itself, lets a node take: replicas of one model, and memory of each device."""

import pytest
from weft_contracts.budget import parse_budget
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.node import Assigned, Capped, Rejoined, Unassigned
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Addresses, Caps, DeviceClaim, Member, ModelSpec, VramBudget, Weights
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.subjects import node
from weft_placement import NoPlace, Placement, Policy, decide_placement
from weft_placement.device_memory import device_memory
from weft_testing.fleet_log import FleetLog

GB, GIB = 10**9, 1 << 30
HERE = Addresses(host="127.0.0.1", http_port=1)
CAPPED = "runs as many replicas of it as its cap allows"


def needing(size: int) -> ModelSpec:
    return ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": size})


def cap(log: FleetLog, id: NodeId, *, replicas: int | None = None, budget: str | None = None) -> None:
    said = None if budget is None else parse_budget(budget)
    log.add(node(id), Capped(caps=Caps(replicas_per_model=replicas, vram_budget=said)))


def assign(log: FleetLog, id: NodeId, model: ModelId, number: int, spec: ModelSpec, *, revision: int = 1) -> None:
    claims = (DeviceClaim(index=0, bytes=GIB),)
    fact = Assigned(
        replica=ReplicaId(f"{model}-{number}"),
        model=model,
        model_name="toy",
        revision=revision,
        digest="d",
        epoch=1,
        members=(Member(node=id, rank=0, devices=claims),),
        spec=spec,
    )
    log.add(node(id), fact)


def refusals(log: FleetLog, name: str, spec: ModelSpec) -> dict[str, int]:
    """Of one more replica of the newest revision; empty where it has a place."""
    model = log.fleet.model_named(name)
    id = model.id if model is not None else log.model(name, spec)
    log.scale(id, 1)
    outcome = decide_placement(log.fleet, next(reversed(log.fleet.replicas)), Policy(), now=1.0, seed=0)
    return outcome.receipt.refusals if isinstance(outcome, NoPlace) else {}


def free(log: FleetLog, id: NodeId) -> list[int]:
    return [device.free for device in device_memory(log.fleet.nodes[id], log.fleet.assigned(id), BUILTIN["simulated"])]


# replicas of one model


def test_a_node_takes_no_more_replicas_of_a_model_than_its_cap_and_any_of_another():
    # given
    log, spec = FleetLog(), needing(GIB)
    id = log.node("a", 80 * GIB)
    cap(log, id, replicas=2)
    model = log.model("toy", spec)
    assign(log, id, model, 101, spec)
    assert {} == refusals(log, "toy", spec)
    # when it runs as many as it may
    assign(log, id, model, 102, spec)
    # then
    assert {CAPPED: 1} == refusals(log, "toy", spec)
    assert {} == refusals(log, "other", spec)


def test_a_retiring_replica_counts_no_more():
    log, spec = FleetLog(), needing(GIB)
    id = log.node("a", 80 * GIB)
    cap(log, id, replicas=1)
    model = log.model("toy", spec)
    assign(log, id, model, 101, spec)
    assert {CAPPED: 1} == refusals(log, "toy", spec)
    log.add(node(id), Unassigned(replica=ReplicaId("m-toy-101"), deadline_s=1, why="test"))
    assert {} == refusals(log, "toy", spec)


def test_a_cap_of_one_does_not_keep_a_new_revision_from_taking_the_olds_place():
    log, spec = FleetLog(), needing(GIB)
    id = log.node("a", 80 * GIB)
    cap(log, id, replicas=1)
    model = log.model("toy", spec)
    assign(log, id, model, 101, spec, revision=7)
    assert {} == refusals(log, "toy", spec)


def test_a_cap_of_zero_is_none_whatever_the_worker_says():
    log, spec = FleetLog(), needing(GIB)
    id = log.node("a", 80 * GIB)
    log.add(node(id), Rejoined(addresses=HERE, caps=Caps(replicas_per_model=1)))
    model = log.model("toy", spec)
    assign(log, id, model, 101, spec)
    assert {CAPPED: 1} == refusals(log, "toy", spec)
    cap(log, id, replicas=0)
    assert {} == refusals(log, "toy", spec)


# memory


@pytest.mark.parametrize(("budget", "expected"), [("80%", 8 * GB), ("12GB", 10 * GB), ("", 10 * GB), ("3GiB", 3 * GIB)])
def test_a_budget_bounds_what_is_free_on_each_device(budget: str, expected: int):
    log = FleetLog()
    id = log.node("a", 10 * GB, 10 * GB)
    cap(log, id, budget=budget)
    assert [expected, expected] == free(log, id)


def test_claims_count_against_the_budget_and_not_only_against_the_device():
    log, spec = FleetLog(), needing(GIB)
    id = log.node("a", 10 * GIB)
    cap(log, id, budget="3GiB")
    assign(log, id, log.model("toy", spec), 101, spec)
    assert [2 * GIB] == free(log, id)


def test_what_is_over_the_budget_already_leaves_nothing_and_stays():
    log, spec = FleetLog(), needing(GIB)
    id = log.node("a", 10 * GIB)
    assign(log, id, log.model("toy", spec), 101, spec)
    cap(log, id, budget="500MB")
    assert [0] == free(log, id)
    assert (ReplicaId("m-toy-101"),) == log.fleet.replicas_on(id)


def test_a_node_that_its_budget_makes_too_small_says_so():
    log = FleetLog()
    id = log.node("a", 10 * GIB)
    cap(log, id, budget="1GiB")
    assert {"has no device with 2.00 GiB free within its VRAM budget": 1} == refusals(log, "toy", needing(2 * GIB))
    assert {"has no device with 20.00 GiB free within its VRAM budget": 1} == refusals(log, "big", needing(20 * GIB))
    cap(log, id)
    assert {"has no device with 20.00 GiB free": 1} == refusals(log, "huge", needing(20 * GIB))


def test_a_model_over_several_devices_keeps_to_each_ones_budget():
    log = FleetLog()
    id = log.node("a", 24 * GIB, 24 * GIB)
    weights = Weights(format="safetensors", weight_bytes=30 * GIB, kv_bytes_per_token=1, heads=32, kv_heads=8)
    spec = ModelSpec(source=SimulatedSource(), engine="vllm", weights=weights)
    assert {} == refusals(log, "wide", spec)
    cap(log, id, budget="50%")
    (reason,) = refusals(log, "wider", spec)
    assert reason.endswith("within its VRAM budget")


def test_a_processors_memory_is_bounded_only_where_there_is_no_accelerator():
    log = FleetLog()
    cpu = log.node("cpu", 10 * GIB, vendor="cpu")
    cap(log, cpu, budget="2GiB")
    assert [2 * GIB] == free(log, cpu)


def test_an_admins_caps_outlive_the_workers_own_until_they_are_given_back():
    # given
    log = FleetLog()
    id = log.node("a", 10 * GIB)
    own = Caps(replicas_per_model=4, vram_budget=VramBudget(share=0.5))
    log.add(node(id), Rejoined(addresses=HERE, caps=own))
    assert own == log.fleet.nodes[id].caps
    # when
    cap(log, id, replicas=1, budget="1GiB")
    log.add(node(id), Rejoined(addresses=HERE, caps=own))
    # then
    assert Caps(replicas_per_model=1, vram_budget=VramBudget(bytes=GIB)) == log.fleet.nodes[id].caps
    # when one is given back
    cap(log, id, replicas=1)
    assert Caps(replicas_per_model=1, vram_budget=VramBudget(share=0.5)) == log.fleet.nodes[id].caps
    # and both
    cap(log, id)
    assert own == log.fleet.nodes[id].caps


def test_what_is_placed_stays_placed_when_a_cap_comes():
    log, spec = FleetLog(), needing(GIB)
    id = log.node("a", 10 * GIB)
    log.scale(log.model("toy", spec), 1)
    outcome = decide_placement(log.fleet, next(reversed(log.fleet.replicas)), Policy(), now=1.0, seed=0)
    assert isinstance(outcome, Placement)
    assert id == outcome.members[0].node
