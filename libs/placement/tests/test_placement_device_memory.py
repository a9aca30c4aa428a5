"""What is free on accelerators: with a budget, with a memory that they share, and where they are made up."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.commit import Cause
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import PressureChanged, Reported
from weft_contracts.facts.node import Capped
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import (
    Backend,
    Caps,
    Device,
    DeviceClaim,
    EngineName,
    Hardware,
    ModelSpec,
    VramBudget,
    Weights,
)
from weft_contracts.ids import CorrelationId, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import machine, node
from weft_fleet.assignments import Assignment, NodeAssignments
from weft_placement import NoPlace, Placement, Policy, decide_placement
from weft_placement.device_memory import RESERVED_BYTES, device_memory, reserved
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
PROCESSOR = Device(index=0, vendor="cpu", name="-", memory=100 * GIB)
ENGINES: tuple[EngineName, ...] = tuple(sorted(BUILTIN))


def node_with(*devices: Device, simulated_on: tuple[Any, ...] = ("cpu",)) -> tuple[FleetLog, NodeId]:
    log = FleetLog()
    id = log.node("a", GIB)
    backends = (
        Backend(engine="vllm", version="1", vendors=("nvidia", "cpu")),
        Backend(engine="simulated", version="1", vendors=simulated_on),
    )
    hardware = Hardware(cpus=8, memory=100 * GIB, devices=(PROCESSOR, *devices))
    log.add(machine(id), Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1"))
    return log, id


def holding(*claims: tuple[int, int]) -> NodeAssignments:
    devices = tuple(DeviceClaim(index=index, bytes=size) for index, size in claims)
    cause = Cause(CorrelationId("c"))
    return NodeAssignments().put(Assignment(ReplicaId("m-x-1"), ModelId("m-x"), 1, "d", 1, 0, devices, 1, cause))


def free(log: FleetLog, id: NodeId, assigned: NodeAssignments, engine: EngineName = "vllm") -> dict[int, int]:
    return {
        device.device_index: device.free for device in device_memory(log.fleet.nodes[id], assigned, BUILTIN[engine])
    }


def accelerator(memory: int, **more: Any) -> Device:
    return Device.model_validate({"index": 1, "vendor": "nvidia", "name": "-", "memory": memory, **more})


def test_a_budget_bounds_what_is_claimed_and_not_what_others_use() -> None:
    log, id = node_with(accelerator(80 * GIB, budget=60 * GIB))

    assert 60 * GIB == free(log, id, NodeAssignments())[1]
    assert 20 * GIB == free(log, id, holding((1, 40 * GIB)))[1]
    log.add(machine(id), PressureChanged(device=1, bytes=10 * GIB))
    assert 60 * GIB == free(log, id, NodeAssignments())[1]
    log.add(machine(id), PressureChanged(device=1, bytes=30 * GIB))
    assert 50 * GIB == free(log, id, NodeAssignments())[1]


def test_an_admins_budget_stands_over_the_workers_until_it_is_lifted() -> None:
    log, id = node_with(accelerator(80 * GIB, budget=60 * GIB))

    log.add(node(id), Capped(caps=Caps(vram_budget=VramBudget(share=1.0))))
    assert 80 * GIB == free(log, id, NodeAssignments())[1]
    log.add(node(id), Capped(caps=Caps()))
    assert 60 * GIB == free(log, id, NodeAssignments())[1]


def test_a_smaller_budget_than_what_is_claimed_leaves_nothing_and_never_less() -> None:
    log, id = node_with(accelerator(80 * GIB, budget=10 * GIB))

    assert 0 == free(log, id, holding((1, 40 * GIB)))[1]


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 120))
def test_devices_with_one_memory_share_what_is_free_of_it(on_processor: int, on_accelerator: int, others: int) -> None:
    log, id = node_with(accelerator(100 * GIB, unified=True))
    log.add(machine(id), PressureChanged(device=0, bytes=others * GIB))

    found = free(log, id, holding((0, on_processor * GIB), (1, on_accelerator * GIB)))

    taken = (on_processor + on_accelerator) * GIB + max(reserved(PROCESSOR), others * GIB)
    assert found[0] == found[1] == max(100 * GIB - taken, 0)


def test_an_accelerator_with_memory_of_its_own_is_not_touched_by_what_is_claimed_of_the_machines() -> None:
    log, id = node_with(accelerator(80 * GIB))

    assert 80 * GIB == free(log, id, holding((0, 90 * GIB)))[1]
    assert 0 == reserved(accelerator(80 * GIB))
    assert RESERVED_BYTES < reserved(accelerator(80 * GIB, unified=True))


def test_only_the_simulated_engine_takes_a_simulated_accelerator() -> None:
    log, id = node_with(accelerator(80 * GIB, simulated=True), simulated_on=("nvidia",))

    assert {0} == set(free(log, id, NodeAssignments(), "vllm"))
    assert {1} == set(free(log, id, NodeAssignments(), "simulated"))


def test_a_simulated_model_lands_on_a_simulated_accelerator_and_no_real_one_does() -> None:
    log, _ = node_with(accelerator(80 * GIB, simulated=True), simulated_on=("nvidia",))
    weights = Weights(format="gguf", weight_bytes=GIB, kv_bytes_per_token=1, heads=8)
    on_disk = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", weights=weights)
    made_up = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 70 * GIB})
    outcomes = []
    for name, spec in (("real", on_disk), ("toy", made_up)):
        log.model(name, spec, replicas=1)
        replica = next(reversed(log.fleet.replicas))
        outcomes.append(decide_placement(log.fleet, replica, Policy(), now=1.0, seed=0))

    assert isinstance(outcomes[0], NoPlace)
    assert isinstance(outcomes[1], Placement)
    assert (DeviceClaim(index=1, bytes=70 * GIB),) == outcomes[1].members[0].devices
