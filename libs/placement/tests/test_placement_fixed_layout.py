"""What a spec fixes of its layout is had as it is, or refused when it comes in."""

from typing import Any

import pytest
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.layout import Layout
from weft_contracts.facts.node import Removed
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import ModelSpec, Vendor, Weights
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import ModelId, NodeId
from weft_contracts.subjects import node
from weft_placement import BALANCED, CandidateRanking, PlannedFleet
from weft_placement.demand import demand_of
from weft_placement.dry_run import dry_run
from weft_placement.fixed_layout import LayoutFault, fault_in_fleet, fault_of_layout, in_ids
from weft_placement.group import Group
from weft_placement.node_evaluator import Candidate
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30


def simulated(gib: int = 1, **layout: Any) -> ModelSpec:
    fixed = Layout.model_validate(layout)
    given = {"memory_bytes": gib * GIB}
    return ModelSpec.model_validate(
        {"source": SimulatedSource(), "engine": "simulated", "engine_args": given, "layout": fixed}
    )


def vllm(heads: int = 32, **layout: object) -> ModelSpec:
    weights = Weights(
        format="safetensors", weight_bytes=GIB, kv_bytes_per_token=1, heads=heads, kv_heads=heads, layers=8
    )
    fixed = Layout.model_validate(layout)
    return ModelSpec(source=PathSource(path="/m"), engine="vllm", weights=weights, layout=fixed)


def of(engine: str, **layout: Any) -> ModelSpec:
    return simulated(**layout).model_copy(update={"engine": engine})


def a_fleet(*counts: int, gib: int = 24, vendor: Vendor = "nvidia") -> FleetLog:
    """Nodes a, b, … with so many devices each."""
    log = FleetLog()
    for name, count in zip("abcdefgh", counts, strict=False):
        log.node(name, *[gib * GIB] * count, vendor=vendor, reads=WORKERS_READ)
    return log


def placed(log: FleetLog, spec: ModelSpec) -> list[tuple[str, list[int]]]:
    """Nodes with their devices."""
    spec = spec.model_copy(update={"layout": in_ids(log.fleet, spec.layout)})
    ranking = CandidateRanking(demand_of(ModelId("m-x"), 1, spec, BALANCED, BUILTIN), BALANCED)
    ranking.sync(PlannedFleet(log.fleet))
    best = ranking.best()
    if isinstance(best, Group):
        return [(each.node, [device.index for device in each.devices]) for each in best.members]
    return [(best.node, [each.index for each in best.devices])] if isinstance(best, Candidate) else []


def test_parallelism_is_kept_where_fewer_devices_would_do() -> None:
    assert [("n-a", [0, 1])] == placed(a_fleet(4), simulated(1, tensor_parallel=2))
    assert [("n-a", [0]), ("n-b", [0])] == placed(a_fleet(1, 1, 1), simulated(1, pipeline_parallel=2))


def test_chosen_devices_alone_are_taken_and_of_them_as_many_as_are_needed() -> None:
    log = a_fleet(4, 4)
    assert [("n-b", [1])] == placed(log, simulated(1, gpus=["b:1", "b:3"]))
    assert [("n-b", [1, 3])] == placed(log, simulated(40, gpus=["b:1", "b:3"]))
    assert [("n-a", [2]), ("n-b", [0])] == placed(log, simulated(40, gpus=["a:2", "b:0"], gpus_per_replica=2))


def test_a_wished_number_is_the_most_that_is_taken_and_fewer_suffice() -> None:
    assert [("n-a", [0])] == placed(a_fleet(4), simulated(20, gpus_per_replica=4))
    assert [] == placed(a_fleet(4), simulated(70, gpus_per_replica=2))


def test_a_replica_that_may_not_span_nodes_makes_no_group_and_one_that_keeps_off_processors_lies_on_none() -> None:
    log = a_fleet(1, 1, 1)
    assert 3 == len(placed(log, simulated(60)))
    assert [] == placed(log, simulated(60, distributed=False))
    assert [] == placed(log, simulated(60).model_copy(update={"spread_all": True}))
    processors = a_fleet(1, gib=64, vendor="cpu")
    assert [("n-a", [0])] == placed(processors, simulated(1))
    assert [] == placed(processors, simulated(1, cpu_offload=False))


def test_preferred_nodes_are_a_groups_first() -> None:
    assert {"n-b", "n-d"} == {id for id, _ in placed(a_fleet(1, 1, 1, 1), simulated(40, preferred_nodes=["d", "b"]))}


def test_a_dry_run_takes_nodes_by_their_names() -> None:
    found = dry_run(a_fleet(2, 2).fleet, "x", simulated(1, gpus=["b:1"]))
    assert "it would go to b" == found.explanations[0].outcome


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (simulated(gpus=["a:0", "a:0"]), "layout.gpus: names a:0 twice"),
        (
            simulated(tensor_parallel=4, gpus_per_replica=2),
            "layout.gpus_per_replica is 2, and its parallelism needs 4: leave one out",
        ),
        (
            simulated(gpus=["a:0"], gpus_per_replica=2),
            "layout.gpus names 1 devices, and a replica is to have 2",
        ),
        (
            vllm(tensor_parallel=2).model_copy(update={"engine_args": {"tensor_parallel_size": 4}}),
            "layout.tensor_parallel is 2, and engine_args.tensor_parallel_size 4: leave one out",
        ),
        (vllm(distributed=True), "layout.distributed: vllm runs on one node: leave it out, or choose another engine"),
        (
            vllm(pipeline_parallel=2),
            "layout.pipeline_parallel: stages are for engines that run over several nodes, vllm runs on one",
        ),
        (
            vllm(gpus=["a:0", "b:0"], gpus_per_replica=2),
            "layout.gpus: it needs 2 of them on one node, since vllm runs on one; no node has more than 1",
        ),
        (of("llama.cpp", tensor_parallel=2), "layout.tensor_parallel: llama.cpp runs on one device: leave it out"),
        (of("llama.cpp", gpus_per_replica=2), "layout.gpus_per_replica: llama.cpp runs on one device: leave it out"),
        (
            simulated(pipeline_parallel=2, distributed=False),
            "layout.pipeline_parallel: stages lie on several nodes, and layout.distributed is false: leave one out",
        ),
        (
            simulated(distributed=True).model_copy(update={"spread_all": True}),
            "layout: spread_all has a replica on each node, so none spans several: leave one out",
        ),
        (
            simulated(cpu_offload=True),
            "layout.cpu_offload: engine_args say how many layers lie on an accelerator: leave it out, or say false",
        ),
        (of("openai", cpu_offload=False), "layout.cpu_offload: openai runs on processors alone: leave it out"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_its_field(spec: ModelSpec, expected: str) -> None:
    assert expected == fault_of_layout(spec, BUILTIN[spec.engine])


def test_what_can_be_meant_is_not() -> None:
    for spec in (simulated(), simulated(tensor_parallel=2, pipeline_parallel=3, distributed=True), vllm()):
        assert fault_of_layout(spec, BUILTIN[spec.engine]) is None
    assert fault_of_layout(vllm(tensor_parallel=2, gpus=["a:0", "a:1"]), BUILTIN["vllm"]) is None


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({"gpus": ["z:0"]}, "layout.gpus[0]: there is no node z; there is: a, b"),
        ({"gpus": ["a:0", "b:7"]}, "layout.gpus[1]: b has no gpu 7: it has 0, 1"),
        ({"preferred_nodes": ["a", "c"]}, "layout.preferred_nodes[1]: there is no node c; there is: a, b"),
    ],
)
def test_nodes_and_devices_that_are_not_there_are_refused(layout: dict[str, object], expected: str) -> None:
    log = a_fleet(2, 2, 2)
    log.add(node(NodeId("n-c")), Removed(why="gone"))
    with pytest.raises(LayoutFault) as fault:
        in_ids(log.fleet, Layout.model_validate(layout))
    assert expected == str(fault.value)


def test_nodes_stand_by_their_ids_whichever_way_they_were_told() -> None:
    log = a_fleet(2, 2)
    told = Layout(gpus=("a:0", "n-b:01"), preferred_nodes=("b",))
    assert Layout(gpus=("n-a:0", "n-b:1"), preferred_nodes=("n-b",)) == in_ids(log.fleet, told)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            simulated(8, tensor_parallel=8),
            "it needs 8 devices of one vendor with 1.00 GiB each on one node, the fleet has 4 at most",
        ),
        (
            simulated(60, tensor_parallel=2),
            "it needs 2 devices of one vendor with 30.00 GiB each on one node, the fleet has 0 at most",
        ),
        (
            simulated(12, tensor_parallel=4, pipeline_parallel=3),
            "it needs 4 devices of one vendor with 1.00 GiB each on each of 3 nodes, the fleet has 2 such nodes",
        ),
        (
            simulated(40, gpus=["n-a:0"]),
            "layout.gpus: it needs 40.00 GiB, the chosen devices of one vendor have 24.00 GiB in all",
        ),
        (vllm(heads=6, tensor_parallel=4), "layout.tensor_parallel: 6 heads do not divide by 4"),
    ],
)
def test_what_no_node_could_ever_give_is_refused_with_what_the_fleet_has(spec: ModelSpec, expected: str) -> None:
    assert expected == fault_in_fleet(spec, a_fleet(4, 4, 2).fleet, BUILTIN[spec.engine])


def test_what_is_taken_by_others_is_no_reason_to_refuse() -> None:
    fleet = a_fleet(4, 4, 2).fleet
    for spec in (
        simulated(90, tensor_parallel=4),
        simulated(20, tensor_parallel=2, pipeline_parallel=3),
        simulated(20, pipeline_parallel=2, tensor_parallel=2, gpus=["n-a:0", "n-a:1", "n-b:0", "n-b:1"]),
        simulated(20, tensor_parallel=2, gpus=["n-c:0", "n-c:1"]),
        simulated(1000),
        vllm(tensor_parallel=4),
    ):
        assert fault_in_fleet(spec, fleet, BUILTIN[spec.engine]) is None
