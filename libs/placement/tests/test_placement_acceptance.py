"""The acceptance rows of placement that one node answers."""

import pytest
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.machine import FileFound, Reported
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Weights
from weft_contracts.ids import InspectionId, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import machine, node
from weft_placement import BUILTIN_POLICIES, NoPlace, Placement, decide_placement
from weft_placement.claim import need_of
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
RTX_4090, RTX_4080, H100, A910B = 26015170560, 17171480576, 85899345920, 68719476736


def simulated(bytes: int, **more: object) -> ModelSpec:
    given = {"source": SimulatedSource(), "engine": "simulated", "engine_args": {"memory_bytes": bytes}, **more}
    return ModelSpec.model_validate(given)


def vllm(need_gib: float, heads: int, *, u: float | None = 0.9, vision: int = 0, **args: int) -> ModelSpec:
    engine_args: dict[str, ArgumentValue] = dict(args)
    if u is not None:
        engine_args["gpu_memory_utilization"] = u
    weights = Weights(
        format="safetensors",
        weight_bytes=int(need_gib * GIB),
        kv_bytes_per_token=1,
        heads=heads,
        kv_heads=heads,
        vision_heads=vision,
    )
    return ModelSpec(source=PathSource(path="/m"), engine="vllm", engine_args=engine_args, weights=weights)


def hold_file(log: FleetLog, id: NodeId, spec: ModelSpec) -> None:
    found = FileFound(inspection=InspectionId("i-1"), source="path:/m", size=1, weights=spec.weights)
    log.add(machine(id), found)


def claim_by_another(log: FleetLog, id: NodeId, *claims: int) -> None:
    """A replica of some other model holds so many bytes on the node's devices."""
    other = log.model(f"other-{id}", simulated(1))
    devices = tuple(DeviceClaim(index=index, bytes=size) for index, size in enumerate(claims))
    fact = Assigned(
        replica=ReplicaId(f"{other}-1"),
        model=other,
        model_name="other",
        revision=1,
        digest="d",
        epoch=1,
        members=(Member(node=id, rank=0, devices=devices),),
        spec=simulated(1),
    )
    log.add(node(id), fact)


def decided(
    log: FleetLog, name: str, spec: ModelSpec, *, avoid: tuple[str, ...] = (), policy: str = "balanced"
) -> Placement | NoPlace:
    id = log.model(name, spec)
    log.scale(id, 1, avoid=avoid)
    return decide_placement(log.fleet, ReplicaId(f"{id}-1"), BUILTIN_POLICIES[policy], now=1.0, seed=7)


def place_of(outcome: Placement | NoPlace) -> tuple[NodeId, tuple[DeviceClaim, ...]]:
    assert isinstance(outcome, Placement), outcome
    (member,) = outcome.members
    return member.node, member.devices


def test_eight_ascend_devices_give_the_first_two():
    log = FleetLog()
    spec = vllm(70.24, 32)
    a = log.node("a", *[A910B] * 8, vendor="ascend")
    hold_file(log, a, spec)
    two = (DeviceClaim(index=0, bytes=61847529062), DeviceClaim(index=1, bytes=61847529062))
    assert (a, two) == place_of(decided(log, "big", spec))


def test_heads_that_divide_by_eight_take_eight_devices_where_five_would_hold_it():
    log = FleetLog()
    spec = vllm(240, 96, vision=16)
    a = log.node("a", *[A910B] * 8, vendor="ascend")
    hold_file(log, a, spec)
    _, devices = place_of(decided(log, "big", spec))
    assert list(range(8)) == [device.index for device in devices]


def test_heads_divide_by_the_tensor_parallel_size_and_not_by_all_devices():
    log = FleetLog()
    spec = vllm(100, 28, tensor_parallel_size=4)
    a = log.node("a", *[H100] * 8)
    hold_file(log, a, spec)
    _, devices = place_of(decided(log, "wide", spec))
    assert 4 == len(devices)
    spec = vllm(100, 28, tensor_parallel_size=8)
    refused = decided(log, "odd", spec)
    assert isinstance(refused, NoPlace)
    assert "no node can take it; the nearest, a, can't split it: 28 heads do not divide by 8" == refused.reason


def test_devices_of_two_vendors_make_no_replica():
    log = FleetLog()
    spec = vllm(30, 32, tensor_parallel_size=2)
    a = log.node("a", RTX_4090, RTX_4090)
    view = log.fleet.nodes[a]
    assert view.hardware is not None
    mixed = tuple(
        device.model_copy(update={"vendor": vendor})
        for device, vendor in zip(view.hardware.devices, ("nvidia", "amd"), strict=True)
    )
    backends = tuple(b.model_copy(update={"vendors": ("nvidia", "amd")}) for b in view.backends)
    hardware = view.hardware.model_copy(update={"devices": mixed})
    log.add(machine(a), Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1"))
    hold_file(log, a, spec)
    refused = decided(log, "pair", spec)
    assert isinstance(refused, NoPlace)
    assert "mixed vendors" in refused.reason


def test_a_small_model_takes_what_it_computes_and_not_the_card():
    log = FleetLog()
    weights = Weights(format="safetensors", weight_bytes=1_200_000_000, kv_bytes_per_token=114_688, kv_heads=8)
    spec = ModelSpec(source=PathSource(path="/m"), engine="vllm", weights=weights)
    a = log.node("a", 80 * GIB)
    claim_by_another(log, a, 80 * GIB - int(71.2 * GIB))
    hold_file(log, a, spec)
    where, (device,) = place_of(decided(log, "small", spec))
    assert a == where
    assert need_of(spec, BUILTIN[spec.engine]).on_each("nvidia", 1) == device.bytes < 6 * GIB


def test_binpack_takes_the_smallest_device_that_holds_it():
    log = FleetLog()
    log.node("big", RTX_4090)
    small = log.node("small", RTX_4080, RTX_4080)
    log.node("mac", 32 * 10**9, vendor="apple")
    claim_by_another(log, NodeId("n-mac"), 32 * 10**9 - int(21.3 * 10**9))
    where, devices = place_of(decided(log, "llama", simulated(6315049984), policy="binpack"))
    assert (small, (DeviceClaim(index=0, bytes=6315049984),)) == (where, devices)


@pytest.mark.parametrize(("policy", "expected"), [("binpack", "n-full"), ("spread", "n-idle")])
def test_binpack_fills_the_fuller_node_and_spread_the_emptier(policy: str, expected: str):
    log = FleetLog()
    full = log.node("full", 64 * GIB, vendor="cpu")
    log.node("idle", 128 * GIB, vendor="cpu")
    claim_by_another(log, full, 30 * GIB)
    where, _ = place_of(decided(log, "toy", simulated(3106511032), policy=policy))
    assert expected == where


def test_the_node_that_has_the_files_is_taken():
    log = FleetLog()
    spec = vllm(1, 8, u=None)
    log.node("a", H100)
    b = log.node("b", H100)
    hold_file(log, b, spec)
    outcome = decided(log, "toy", spec)
    assert b == place_of(outcome)[0]
    assert {"has not answered yet whether it holds path:/m": 1} == outcome.receipt.refusals


def test_no_capacity_is_one_outcome_with_reasons():
    log = FleetLog()
    log.node("a", 4 * GIB)
    log.node("b", 2 * GIB, labels={"zone": "2"})
    refused = decided(log, "toy", simulated(8 * GIB, selector={"!zone": ""}))
    assert isinstance(refused, NoPlace)
    expected = "no node can take it; the nearest, a, has no device with 8.00 GiB free (at most 4.00 GiB)"
    assert expected == refused.reason
    assert {"bears the label zone": 1, "has no device with 8.00 GiB free": 1} == refused.receipt.refusals
    assert ModelId("m-toy") in log.fleet.models
