"""Replicas over several nodes: which nodes, how many devices of each, who leads, and why there is no group."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from weft_contracts.commit import Cause
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import Scalar
from weft_contracts.facts.machine import FileFound
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Vendor, Weights
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import CorrelationId, InspectionId, ModelId, NodeId, ReplicaId, replica_id
from weft_contracts.subjects import machine
from weft_fleet import ReplicaView
from weft_placement import (
    BALANCED,
    BINPACK,
    SPREAD,
    CandidateRanking,
    Circumstances,
    NoPlace,
    Placement,
    PlannedFleet,
    Policy,
    choose,
)
from weft_placement.claim import Need
from weft_placement.demand import Demand, demand_of
from weft_placement.node_answers import answers_of
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
GROUPS = BUILTIN["vllm"].model_copy(update={"splits": ("devices", "nodes")})
"""An engine that runs over several nodes."""


def spec_of(heads: int = 64, **args: Scalar) -> ModelSpec:
    weights = Weights(format="safetensors", weight_bytes=GIB, kv_bytes_per_token=1, heads=heads, layers=60)
    return ModelSpec(source=PathSource(path="/m"), engine="vllm", engine_args={**args}, weights=weights)


def a_fleet(*nodes: tuple[int, int], vendors: Mapping[int, Vendor] | None = None) -> FleetLog:
    """Nodes a, b, …, each with so many devices of so many GiB."""
    log = FleetLog()
    for place, (count, size) in enumerate(nodes):
        log.node(
            "abcdefgh"[place], *[size * GIB] * count, vendor=(vendors or {}).get(place, "nvidia"), reads=WORKERS_READ
        )
    return log


def demand_for(log: FleetLog, gib: int, spec: ModelSpec | None = None, **more: object) -> Demand:
    spec, found = spec or spec_of(), log.fleet
    for id in found.nodes:
        found_there = FileFound(inspection=InspectionId("i"), source="path:/m", size=1, weights=spec.weights)
        log.add(machine(id), found_there)
    engines = {**BUILTIN, "vllm": GROUPS}
    need = Need(gib * GIB, 0, 0, place="accelerator", layers=spec.weights.layers)
    demand = demand_of(ModelId("m-big"), 1, spec, BALANCED, engines, {}, need)
    return replace(demand, **more)  # pyright: ignore[reportArgumentType] - fields of the demand


def ranked(log: FleetLog, demand: Demand, policy: Policy = BALANCED) -> CandidateRanking:
    # the nodes' backends are of the mesh's own profile, whose digest the other one lacks
    ranking = CandidateRanking(replace(demand, profile=demand.profile), policy)
    ranking.sync(PlannedFleet(log.fleet))
    return ranking


def replica(number: int = 1) -> ReplicaView:
    cause = Cause(CorrelationId("c"))
    id = replica_id(ModelId("m-big"), number)
    return ReplicaView(id=id, model=ModelId("m-big"), revision=1, number=number, digest="d", cause=cause)


def decided(log: FleetLog, demand: Demand, policy: Policy = BALANCED) -> Placement | NoPlace:
    return choose(log.fleet, replica(), ranked(log, demand, policy), Circumstances(1.0, 2))


def shape(outcome: Placement | NoPlace) -> list[tuple[str, int, list[int]]]:
    """Node, rank and devices of each member."""
    assert isinstance(outcome, Placement), outcome
    return [(m.node, m.rank, [device.index for device in m.devices]) for m in outcome.members]


def why(outcome: Placement | NoPlace) -> str:
    assert isinstance(outcome, NoPlace), outcome
    return outcome.reason


def test_a_replica_that_no_node_holds_goes_over_the_fewest_nodes_that_do_with_as_many_devices_on_each() -> None:
    log = a_fleet((4, 24), (4, 24), (4, 24))
    assert [("n-a", 0, [0, 1, 2, 3]), ("n-b", 1, [0, 1, 2, 3])] == shape(decided(log, demand_for(log, 150)))
    # two nodes of three devices would hold it, and 64 heads don't divide by three
    log = a_fleet((3, 24), (3, 24), (3, 24))
    assert [2, 2, 2] == [len(devices) for *_, devices in shape(decided(log, demand_for(log, 130)))]


def test_a_node_that_holds_it_alone_comes_before_a_group() -> None:
    log = a_fleet((2, 24), (4, 24), (4, 24))
    assert [("n-b", 0, [0, 1, 2, 3])] == shape(decided(log, demand_for(log, 80)))


def test_every_device_claims_its_part_and_no_more() -> None:
    log = a_fleet((2, 24), (2, 24))
    outcome = decided(log, demand_for(log, 80))
    assert isinstance(outcome, Placement)
    assert {20 * GIB} == {device.bytes for member in outcome.members for device in member.devices}


def test_a_stage_with_one_layer_more_is_what_each_device_is_claimed_for() -> None:
    log = a_fleet((1, 24), (1, 24))
    odd = demand_for(
        log, 30, spec_of().model_copy(update={"weights": spec_of().weights.model_copy(update={"layers": 3})})
    )
    outcome = decided(log, odd)
    assert isinstance(outcome, Placement)
    assert [20 * GIB, 20 * GIB] == [member.devices[0].bytes for member in outcome.members]


def test_a_group_is_of_one_vendor() -> None:
    log = a_fleet((2, 24), (2, 24), (2, 24), vendors={1: "amd"})
    assert ["n-a", "n-c"] == [node for node, *_ in shape(decided(log, demand_for(log, 80)))]
    log = a_fleet((2, 24), (2, 24), vendors={1: "amd"})
    assert "devices of one vendor have 48.00 GiB in all" in why(decided(log, demand_for(log, 80)))


def test_a_group_is_whole_or_there_is_none() -> None:
    log = a_fleet((2, 24), (2, 24))
    assert "it needs 97.00 GiB, devices of one vendor have 96.00 GiB in all" in why(decided(log, demand_for(log, 97)))


def test_a_node_whose_worker_knows_of_no_groups_is_in_none() -> None:
    log = a_fleet((2, 24), (2, 24))
    log.node("old", 24 * GIB, 24 * GIB, reads={"node.assigned": 4})
    demand = demand_for(log, 140)
    assert "devices of one vendor have 96.00 GiB in all" in why(decided(log, demand))


def test_what_has_no_heads_and_no_files_lies_on_any_number_of_devices_and_nodes() -> None:
    log = a_fleet((1, 24), (1, 24), (1, 24))
    spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 60 * GIB})
    simulated = demand_of(ModelId("m-big"), 1, spec, BALANCED, BUILTIN)
    assert [("n-a", 0, [0]), ("n-b", 1, [0]), ("n-c", 2, [0])] == shape(decided(log, simulated))
    log = a_fleet((3, 24))
    assert [("n-a", 0, [0, 1, 2])] == shape(decided(log, simulated))


def test_an_engine_that_runs_on_one_node_makes_no_group() -> None:
    log = a_fleet((2, 24), (2, 24))
    demand = replace(demand_for(log, 80), groups=False)
    assert "several nodes" not in why(decided(log, demand))
    assert "vllm runs on one node" == ranked(log, demand).group()


def test_nodes_that_a_replica_avoids_are_in_no_group() -> None:
    log = a_fleet((2, 24), (2, 24), (2, 24))
    ranking = ranked(log, demand_for(log, 80))
    avoiding = replace(replica(), avoid=("n-a",))
    assert ["n-b", "n-c"] == [node for node, *_ in shape(choose(log.fleet, avoiding, ranking, Circumstances(1.0, 2)))]
    both = replace(replica(), avoid=("n-a", "n-b"))
    assert isinstance(choose(log.fleet, both, ranking, Circumstances(1.0, 2)), NoPlace)


def test_preferred_nodes_are_taken_before_others() -> None:
    log = a_fleet((2, 24), (2, 24), (2, 24))
    demand = demand_for(log, 80, preferred=frozenset({NodeId("n-c")}))
    assert ["n-c", "n-a"] == [node for node, *_ in shape(decided(log, demand))]


@pytest.mark.parametrize(("policy", "expected"), [(BINPACK, ["n-b", "n-c"]), (SPREAD, ["n-a", "n-d"])])
def test_packing_takes_the_smallest_devices_that_hold_a_part_and_spreading_the_largest(
    policy: Policy, expected: list[str]
) -> None:
    log = a_fleet((1, 80), (1, 24), (1, 24), (1, 80))
    spec = spec_of()
    demand = replace(demand_for(log, 100, spec), fills=policy.fills("binpack"))
    small = replace(demand, need=replace(demand.need, weights=40 * GIB), stages=2)
    assert expected == [node for node, *_ in shape(decided(log, small, policy))]


def test_a_fixed_layout_is_kept_or_refused_with_what_the_fleet_has() -> None:
    log = a_fleet((4, 80), (4, 80))
    fixed = demand_for(log, 100, devices=4, stages=2)
    assert [("n-a", 0, [0, 1, 2, 3]), ("n-b", 1, [0, 1, 2, 3])] == shape(decided(log, fixed))
    refused = why(decided(log, demand_for(log, 100, devices=4, stages=3)))
    assert "it needs 4 devices on 3 nodes, the fleet has 2 with as many" in refused
    assert "64 heads do not divide by 3" in why(decided(log, demand_for(log, 100, devices=3, stages=2)))


def test_a_vocabulary_that_the_devices_do_not_divide_makes_another_layout() -> None:
    log = a_fleet((4, 24), (4, 24), (4, 24), (4, 24))
    even = shape(decided(log, demand_for(log, 150, vocabulary=32_000)))
    assert [4, 4] == [len(devices) for *_, devices in even]
    odd = shape(decided(log, demand_for(log, 150, vocabulary=32_002)))
    assert [2, 2, 2, 2] == [len(devices) for *_, devices in odd]


def test_of_a_wished_number_fewer_are_taken_where_they_suffice_and_the_receipt_says_so() -> None:
    log = a_fleet((4, 24), (4, 24))
    outcome = decided(log, demand_for(log, 90, wished=8))
    assert [4] == [len(devices) for *_, devices in shape(outcome)]
    assert "8 devices were asked for: 4 of them hold it" == outcome.receipt.rungs[-1]
    assert "no more than 6 of them were asked for" in why(decided(log, demand_for(log, 150, wished=6)))


def test_of_devices_chosen_by_hand_each_node_gives_what_was_chosen_and_the_one_with_most_leads() -> None:
    log = a_fleet((1, 24), (4, 16))
    chosen = {NodeId("n-a"): frozenset({0}), NodeId("n-b"): frozenset({0, 1, 3})}
    demand = demand_for(log, 20, devices=4, by_hand=True, chosen=chosen)
    assert [("n-b", 0, [0, 1, 3]), ("n-a", 1, [0])] == shape(decided(log, demand))


def test_chosen_devices_on_one_node_need_no_group_and_no_other_device_is_taken() -> None:
    log = a_fleet((4, 24), (4, 24))
    chosen = {NodeId("n-b"): frozenset({1, 3})}
    outcome = decided(log, demand_for(log, 40, chosen=chosen))
    assert [("n-b", 0, [1, 3])] == shape(outcome)
    assert {"has none of the devices that were chosen for it": 1} == outcome.receipt.refusals
    assert [("n-b", 0, [1])] == shape(decided(log, demand_for(log, 20, chosen=chosen)))


def test_chosen_devices_that_are_too_full_are_not_replaced_by_others() -> None:
    log = a_fleet((4, 24), (4, 24))
    chosen = {NodeId("n-a"): frozenset({0}), NodeId("n-b"): frozenset({0})}
    refused = why(decided(log, demand_for(log, 90, devices=2, by_hand=True, chosen=chosen)))
    assert "it needs 2 of the chosen devices; 2 are to be had, or have too little free" in refused


def test_a_receipt_holds_all_members_of_a_group() -> None:
    log = a_fleet(*[(1, 24)] * 8)
    spec = spec_of(heads=1)
    outcome = decided(log, demand_for(log, 170, spec))
    assert isinstance(outcome, Placement)
    assert 8 == len(outcome.members)
    assert [m.node for m in outcome.members] == [each.node for each in outcome.receipt.candidates]
    assert 1 == len({each.score for each in outcome.receipt.candidates})
    assert 0.125 == outcome.receipt.candidates[0].scores["devices"]
    assert outcome.receipt.rungs[0].startswith("one device: the best node has no device with 170.00 GiB free")


def test_more_nodes_than_a_receipt_has_candidates_are_all_in_it() -> None:
    log = FleetLog()
    for place in range(16):
        log.node(f"w{place:02}", 24 * GIB, reads=WORKERS_READ)
    demand = demand_for(log, 380, spec_of(heads=1))
    outcome = decided(log, replace(demand, need=replace(demand.need, layers=0)))
    assert isinstance(outcome, Placement)
    assert 16 == len(outcome.members) == len(outcome.receipt.candidates)


def test_later_groups_see_the_claims_of_earlier_ones() -> None:
    log = a_fleet((2, 24), (2, 24), (2, 24), (2, 24))
    ranking, planned_fleet = ranked(log, demand_for(log, 80)), PlannedFleet(log.fleet)
    taken: list[str] = []
    for number in (1, 2):
        ranking.sync(planned_fleet)
        outcome = choose(log.fleet, replica(number), ranking, Circumstances(1.0, 2))
        assert isinstance(outcome, Placement)
        taken += [member.node for member in outcome.members]
        planned_fleet.plan(replica(number), outcome.members, replica(number).cause)
    assert sorted(taken) == ["n-a", "n-b", "n-c", "n-d"]
    ranking.sync(planned_fleet)
    assert isinstance(choose(log.fleet, replica(3), ranking, Circumstances(1.0, 2)), NoPlace)


def test_which_devices_are_free_is_looked_at_anew_where_as_much_is_free_as_before() -> None:
    log = a_fleet((2, 24), (2, 24))
    ranking = ranked(log, demand_for(log, 48, devices=1, stages=2))
    other = ReplicaView(
        id=ReplicaId("m-o-1"), model=ModelId("m-o"), revision=1, number=1, digest="d", cause=replica().cause
    )
    for held, free in ((0, 1), (1, 0)):
        planned_fleet = PlannedFleet(log.fleet)
        for node in ("n-a", "n-b"):
            claim = DeviceClaim(index=held, bytes=24 * GIB)
            planned_fleet.plan(other, (Member(node=NodeId(node), rank=0, devices=(claim,)),), other.cause)
        ranking.sync(planned_fleet)
        outcome = shape(choose(log.fleet, replica(), ranking, Circumstances(1.0, 2)))
        assert [[free], [free]] == [devices for *_, devices in outcome]


def test_an_explanation_shows_each_node_of_a_group_with_its_devices() -> None:
    log = a_fleet((2, 24), (2, 24), (1, 24))
    ranking = ranked(log, demand_for(log, 80))
    answers = answers_of(PlannedFleet(log.fleet), ranking, replica(), {"n-a", "n-b"})
    assert [("a", "several nodes", (0, 1), True), ("b", "several nodes", (0, 1), True)] == [
        (each.name, each.rung, each.devices, each.chosen) for each in answers[:2]
    ]
    assert answers[2].refusal is not None


def kaito(weight_bytes: int, gpu_bytes: int, gpus_of_a_node: int, kv_bytes: int) -> int:
    """How many nodes KAITO would take."""
    reserved = 2.3 * GIB + kv_bytes / gpus_of_a_node
    of_each = (gpu_bytes * 0.84 - reserved) / 1.05
    gpus = int(weight_bytes * 1.02 / of_each) + 1
    return -(-gpus // gpus_of_a_node)


@pytest.mark.parametrize("gigabytes", [60, 250, 600, 700, 1000, 1300, 1600])
def test_a_group_has_as_many_nodes_as_another_estimate_says(gigabytes: int) -> None:
    log = a_fleet(*[(8, 80)] * 6)
    weights = spec_of(heads=128).weights.model_copy(update={"weight_bytes": gigabytes * 10**9, "layers": 0})
    spec = spec_of(heads=128, gpu_memory_utilization=0.84).model_copy(update={"weights": weights})
    computed = demand_of(ModelId("m-big"), 1, spec, BALANCED, BUILTIN, {})
    outcome = decided(log, replace(demand_for(log, 1, spec), need=computed.need))
    assert kaito(gigabytes * 10**9, 80 * GIB, 8, 1024 * 8) == len(shape(outcome))
