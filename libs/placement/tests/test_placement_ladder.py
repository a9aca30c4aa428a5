"""The ladder's order: accelerators before a processor, part of a replica on one before all of it beside them."""

from dataclasses import replace

import pytest
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import Scalar
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.machine import FileFound, Reported
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import Backend, Device, Hardware, ModelSpec, Vendor, Weights
from weft_contracts.ids import InspectionId, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import machine
from weft_placement import (
    BALANCED,
    CandidateRanking,
    NoPlace,
    Placement,
    PlannedFleet,
    Policy,
    decide_placement,
    dry_run,
    explain,
)
from weft_placement.claim import offloads_of
from weft_placement.demand import demand_of
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit import LADDER, partial_offload
from weft_placement.fit.option import Miss, Option
from weft_placement.node_evaluator import Candidate
from weft_testing.fleet_log import FleetLog

GIB, MIB = 1 << 30, 1 << 20
WEIGHTS = Weights(
    format="gguf",
    weight_bytes=10 * GIB,
    kv_bytes_per_token=10 * MIB // 1024,
    layers=10,
    heads=8,
    layer_runs=(LayerRun(10, GIB, MIB // 1024),),
)


def simulated(size: int) -> ModelSpec:
    return ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": size})


def gguf(**args: Scalar) -> ModelSpec:
    return ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", engine_args={**args}, weights=WEIGHTS)


def machine_with(
    log: FleetLog, name: str, ram: int, *gpus: int, vendor: Vendor = "nvidia", engine: str = "simulated"
) -> NodeId:
    """A node with a processor's memory and accelerators beside, all of which the engine can use."""
    id = log.node(name, ram, vendor="cpu")
    host = Device(index=0, vendor="cpu", name="host", memory=ram)
    cards = [Device(index=i, vendor=vendor, name="card", memory=size) for i, size in enumerate(gpus, 1)]
    backend = Backend(engine=engine, version="1", vendors=("cpu", vendor))
    hardware = Hardware(cpus=8, memory=ram, devices=(host, *cards))
    log.add(machine(id), Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1"))
    return id


def decided(log: FleetLog, spec: ModelSpec, policy: Policy = BALANCED, replicas: int = 1) -> Placement | NoPlace:
    id = log.model("toy", spec, replicas=replicas)
    return decide_placement(log.fleet, ReplicaId(f"{id}-1"), policy, now=1.0, seed=7)


def devices_of(outcome: Placement | NoPlace) -> tuple[str, list[int]]:
    assert isinstance(outcome, Placement), outcome
    (member,) = outcome.members
    return member.node, [device.index for device in member.devices]


def memory(index: int, free: int, vendor: Vendor = "nvidia") -> DeviceMemory:
    return DeviceMemory(index, vendor, 100 * GIB, free)


def test_the_rungs_are_in_their_order() -> None:
    keys = ["one-device", "several-devices", "several-nodes", "partial-offload", "processor"]
    assert keys == [rung.key for rung in LADDER]
    assert ["several-nodes"] == [rung.key for rung in LADDER if rung.fit is None]


@pytest.mark.parametrize("policy", ["balanced", "binpack", "spread"])
def test_an_accelerator_comes_before_a_processor_with_less_memory_on_the_same_node(policy: str) -> None:
    log = FleetLog()
    machine_with(log, "a", 16 * GIB, 80 * GIB)
    spec = simulated(4 * GIB).model_copy(update={"policy": policy})
    assert ("n-a", [1]) == devices_of(decided(log, spec))


def test_a_node_with_an_accelerator_comes_before_one_with_a_processor_alone() -> None:
    log = FleetLog()
    log.node("a", 64 * GIB, vendor="cpu")
    machine_with(log, "b", 64 * GIB, 80 * GIB)
    assert ("n-b", [1]) == devices_of(decided(log, simulated(4 * GIB)))


def test_a_second_replica_shares_the_node_with_the_accelerators_before_it_goes_to_a_processor() -> None:
    log = FleetLog()
    log.node("a", 64 * GIB, vendor="cpu")
    machine_with(log, "b", 64 * GIB, 80 * GIB, 80 * GIB)
    spec = simulated(4 * GIB).model_copy(update={"min_replicas": 2})
    placed = dry_run(log.fleet, "toy", spec)
    assert [["n-b"], ["n-b"]] == [
        [answer.node for answer in each.answers if answer.chosen] for each in placed.explanations
    ]


def test_the_processor_is_taken_where_no_accelerator_holds_it_and_each_rung_that_might_have_says_why() -> None:
    log = FleetLog()
    machine_with(log, "a", 64 * GIB, 8 * GIB)
    outcome = decided(log, simulated(16 * GIB))
    assert ("n-a", [0]) == devices_of(outcome)
    assert ("one device: the best node has no device with 16.00 GiB free",) == outcome.receipt.rungs


def test_on_nodes_with_processors_alone_only_the_rungs_name_tells_of_it() -> None:
    log = FleetLog()
    log.node("a", 16 * GIB, vendor="cpu")
    outcome = decided(log, simulated(4 * GIB))
    assert ("n-a", [0]) == devices_of(outcome)
    assert () == outcome.receipt.rungs
    assert "processor" == explain(log.fleet, ReplicaId("m-toy-1")).answers[0].rung
    log = FleetLog()
    log.node("a", 4 * GIB, vendor="cpu")
    refused = decided(log, simulated(8 * GIB))
    assert isinstance(refused, NoPlace)
    assert {"has no device with 8.00 GiB free": 1} == refused.receipt.refusals


def test_a_node_of_both_kinds_says_what_its_accelerators_lack() -> None:
    log = FleetLog()
    machine_with(log, "a", 8 * GIB, 4 * GIB, engine="vllm")
    weights = Weights(format="safetensors", weight_bytes=40 * GIB, kv_bytes_per_token=1, heads=8)
    spec = ModelSpec(source=PathSource(path="/m"), engine="vllm", weights=weights)
    found = FileFound(inspection=InspectionId("i"), source="path:/m", size=1, weights=weights)
    log.add(machine(NodeId("n-a")), found)
    refused = decided(log, spec)
    assert isinstance(refused, NoPlace)
    assert "has not 42.00 GiB free on devices of one vendor that its heads divide by" in refused.reason


# partial offload


def offloading(free: int, host: int, *more: DeviceMemory) -> Option | Miss:
    spec = gguf()
    demand = demand_of(ModelId("m"), 1, spec, BALANCED, BUILTIN, {})
    asked = replace(demand, offloads=offloads_of(spec, BUILTIN["llama.cpp"]))
    return partial_offload.fit([memory(1, free), *more], asked, memory(0, host, "cpu"))


def test_as_many_layers_as_fit_lie_on_the_accelerator_and_the_rest_beside_it() -> None:
    seen: list[int] = []
    for size in (2, 4, 6, 8, 10, 12):
        found = offloading(size * GIB, 100 * GIB)
        assert isinstance(found, Option)
        assert found.layers is not None
        assert found.host is not None
        assert found.devices[0].bytes <= size * GIB
        need = offloads_of(gguf(), BUILTIN["llama.cpp"])
        if found.layers < len(need):
            assert need[found.layers].on_each("nvidia", 1) > size * GIB
        seen.append(found.layers)
    assert seen == sorted(seen)
    assert seen[0] < seen[-1] <= 9


def test_of_several_accelerators_the_one_that_takes_most_layers_is_chosen() -> None:
    found = offloading(3 * GIB, 100 * GIB, memory(2, 8 * GIB), memory(3, 5 * GIB))
    assert isinstance(found, Option)
    assert [2] == [device.index for device in found.devices]


def test_what_the_machine_has_no_memory_for_is_not_offloaded() -> None:
    found = offloading(4 * GIB, 2 * GIB)
    assert isinstance(found, Miss)
    assert "of the machine's memory free beside its devices" in found.reason


def test_a_device_without_room_for_the_last_layer_takes_none() -> None:
    found = offloading(100 * MIB, 100 * GIB)
    assert isinstance(found, Miss)
    assert found.reason.endswith("free, which its last layer alone takes")
    assert 100 * MIB == found.free


def test_only_an_engine_that_lies_in_two_places_is_offloaded_and_only_where_nothing_is_said_of_layers() -> None:
    assert 9 == len(offloads_of(gguf(), BUILTIN["llama.cpp"]))
    assert () == offloads_of(gguf(gpu_layers=4), BUILTIN["llama.cpp"])
    vllm = gguf().model_copy(update={"engine": "vllm"})
    assert () == offloads_of(vllm, BUILTIN["vllm"])
    plain = gguf().model_copy(update={"weights": WEIGHTS.without_layers})
    assert () == offloads_of(plain, BUILTIN["llama.cpp"])


def test_part_of_a_replica_on_an_accelerator_comes_before_all_of_it_on_a_processor() -> None:
    log = FleetLog()
    a = machine_with(log, "a", 64 * GIB, 6 * GIB, engine="llama.cpp")
    b = log.node("b", 64 * GIB, vendor="cpu")
    for id in (a, b):
        found = FileFound(inspection=InspectionId("i"), source="path:/m", size=1, weights=WEIGHTS)
        log.add(machine(id), found)
    demand = demand_of(ModelId("m"), 1, gguf(), BALANCED, BUILTIN, {})
    asked = replace(demand, offloads=offloads_of(gguf(), BUILTIN["llama.cpp"]))
    ranking = CandidateRanking(asked, BALANCED)
    ranking.sync(PlannedFleet(log.fleet))
    best = ranking.best()
    assert isinstance(best, Candidate)
    assert ("n-a", "partial-offload") == (best.node, LADDER[best.rung].key)
    assert best.layers
    # a mesh's own decisions don't choose layers: an assignment has no word for it that the spec lacks
    ranking = CandidateRanking(demand, BALANCED)
    ranking.sync(PlannedFleet(log.fleet))
    best = ranking.best()
    assert isinstance(best, Candidate)
    assert "processor" == LADDER[best.rung].key
