"""Pools, what a device must have, and models that share no node: who is refused, and what of it is a node's own."""

import pytest
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Assigned, Labelled, Unassigned
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Device, Hardware, ModelSpec
from weft_contracts.ids import NodeId
from weft_contracts.subjects import machine, node
from weft_placement import NoPlace, Placement, decide_placement, explain
from weft_placement.dry_run import dry_run
from weft_placement.policy import BUILTIN_POLICIES
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
BALANCED = BUILTIN_POLICIES["balanced"]


def simulated(**changes: object) -> ModelSpec:
    return ModelSpec.model_validate({"source": SimulatedSource(), "engine": "simulated", **changes})


def outcome(log: FleetLog, name: str, spec: ModelSpec) -> Placement | NoPlace:
    """Of one more replica; a placement is taken up into the log."""
    id = log.model(name, spec)
    log.scale(id, 1)
    replica = next(reversed(log.fleet.replicas))
    found = decide_placement(log.fleet, replica, BALANCED, now=1.0, seed=0)
    if isinstance(found, Placement):
        view, (member,) = log.fleet.replicas[replica], found.members
        fact = Assigned(
            replica=replica,
            model=id,
            model_name=name,
            revision=view.revision,
            digest=view.digest,
            epoch=1,
            members=found.members,
            spec=spec,
        )
        log.add(node(member.node), fact)
    return found


def refusals(log: FleetLog, spec: ModelSpec, name: str = "toy") -> dict[str, int]:
    found = outcome(log, name, spec)
    assert isinstance(found, NoPlace), found
    return found.receipt.refusals


def told(log: FleetLog) -> dict[str, str | None]:
    """What each node says of the last replica."""
    return {each.name: each.refusal for each in explain(log.fleet, next(reversed(log.fleet.replicas))).answers}


def with_devices(log: FleetLog, name: str, *devices: tuple[str, str | None]) -> NodeId:
    """A node with devices of these vendors and capabilities, beside its processor."""
    id = log.node(name, GIB)
    found = [Device(index=0, vendor="cpu", name="processor", memory=8 * GIB)]
    for place, (vendor, capability) in enumerate(devices):
        given = {"index": place + 1, "vendor": vendor, "name": f"{vendor} card", "memory": 8 * GIB}
        found.append(Device.model_validate({**given, "compute_capability": capability}))
    hardware = Hardware(cpus=8, memory=8 * GIB, devices=tuple(found))
    backends = log.fleet.nodes[id].backends
    usable = tuple(each.model_copy(update={"vendors": tuple({d.vendor for d in found})}) for each in backends)
    log.add(machine(id), Reported(hardware=hardware, backends=usable, builtins=(), agent_version="1"))
    return id


@pytest.mark.parametrize(
    ("selector", "taken"),
    [({}, "open"), ({"pool": "red"}, "red"), ({"!pool": ""}, "open"), ({"zone": "1"}, "open")],
)
def test_a_node_of_a_pool_takes_models_alone_that_name_the_pool(selector: dict[str, str], taken: str) -> None:
    log = FleetLog()
    log.node("red", GIB, labels={"pool": "red", "zone": "1"})
    log.node("blue", GIB, labels={"pool": "blue", "zone": "1"})
    log.node("open", GIB, labels={"zone": "1"})

    found = outcome(log, "toy", simulated(selector=selector))

    assert isinstance(found, Placement)
    assert [f"n-{taken}"] == [member.node for member in found.members]


def test_pools_are_counted_as_one_reason_and_named_node_by_node() -> None:
    log = FleetLog()
    log.node("red", GIB, labels={"pool": "red"})
    log.node("blue", GIB, labels={"pool": "blue"})

    reason = "is kept for models whose selector names its pool"
    assert {reason: 2} == refusals(log, simulated())
    assert {"red": f"{reason}; that is red", "blue": f"{reason}; that is blue"} == told(log)


def test_a_node_that_leaves_its_pool_takes_any_model() -> None:
    log = FleetLog()
    red = log.node("red", GIB, labels={"pool": "red"})
    refusals(log, simulated())

    log.add(node(red), Labelled(labels={"pool": None}))

    assert isinstance(outcome(log, "other", simulated()), Placement)


def test_a_missing_label_is_told_beside_what_the_node_bears_of_it() -> None:
    log = FleetLog()
    log.node("a", GIB, labels={"zone": "1"})
    log.node("b", GIB)

    assert {"lacks the label zone=2": 2} == refusals(log, simulated(selector={"zone": "2"}))
    assert {"a": "lacks the label zone=2; it bears zone=1", "b": "lacks the label zone=2"} == told(log)
    assert {"bears the label zone": 1, "lacks the label rack=7": 1} == refusals(
        log, simulated(selector={"!zone": "", "rack": "7"}), "other"
    )
    assert "bears the label zone; that is 1" == told(log)["a"]


def test_a_model_goes_to_devices_alone_that_have_what_it_asks() -> None:
    log = FleetLog()
    with_devices(log, "mixed", ("nvidia", "8.0"), ("nvidia", "8.9"), ("nvidia", None))

    found = outcome(log, "toy", simulated(capability=["8.9"]))

    assert isinstance(found, Placement)
    assert [(2,)] == [tuple(device.index for device in member.devices) for member in found.members]


def test_what_has_no_such_device_is_counted_as_one_and_says_what_it_has() -> None:
    log = FleetLog()
    with_devices(log, "old", ("nvidia", "7.5"), ("nvidia", "7.5"))
    with_devices(log, "amd", ("amd", "gfx90a"))
    with_devices(log, "silent", ("nvidia", None))
    with_devices(log, "none")

    reason = "has no device of compute capability 8.9 or higher or gfx942"
    assert {reason: 4} == refusals(log, simulated(capability=["8.9", "gfx942"]))
    assert {
        "old": f"{reason}; it has nvidia card (7.5)",
        "amd": f"{reason}; it has amd card (gfx90a)",
        "silent": f"{reason}; it has nvidia card (unknown)",
        "none": f"{reason}; it has a processor alone",
    } == told(log)


def test_models_of_one_anti_affinity_share_no_node() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.node("b", 8 * GIB)
    spec = simulated(anti_affinity="front")

    assert isinstance(outcome(log, "one", spec), Placement)
    assert isinstance(outcome(log, "two", spec), Placement)
    assert {"n-a", "n-b"} == {node for node in log.fleet.nodes if log.fleet.assigned(node).replicas}

    reason = "runs a replica of the anti-affinity front already"
    assert {reason: 2} == refusals(log, spec, "three")
    own = {name: why.removeprefix(f"{reason}; ") for name, why in told(log).items() if why is not None}
    assert {"m-one-1", "m-two-1"} == set(own.values())
    assert isinstance(outcome(log, "four", simulated(anti_affinity="back")), Placement)
    assert isinstance(outcome(log, "five", simulated()), Placement)


def test_replicas_of_one_round_count_for_an_anti_affinity() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.node("b", 8 * GIB)

    found = dry_run(log.fleet, "toy", simulated(anti_affinity="front", min_replicas=3, max_replicas=3))

    assert not found.fits
    assert [True, True, False] == [any(answer.chosen for answer in each.answers) for each in found.explanations]


def test_what_retires_and_an_earlier_revision_make_room_in_an_anti_affinity() -> None:
    log = FleetLog()
    only = log.node("a", 8 * GIB)
    spec = simulated(anti_affinity="front")
    outcome(log, "one", spec)

    assert isinstance(outcome(log, "one", spec.model_copy(update={"context_tokens": 512})), Placement)
    assert {"runs a replica of the anti-affinity front already": 1} == refusals(log, spec, "two")

    for replica in log.fleet.assigned(only).assignments:
        log.add(node(only), Unassigned(replica=replica, deadline_s=1, why="not wanted"))
    assert isinstance(outcome(log, "three", spec), Placement)


@pytest.mark.parametrize("changes", [{"capability": ("8.9",)}, {"anti_affinity": "front"}, {"selector": {"a": "1"}}])
def test_what_says_where_replicas_may_run_makes_another_revision(changes: dict[str, object]) -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    id = log.model("toy", simulated(), digest="same")
    before = log.fleet.models[id].newest
    log.model("toy", simulated(**changes), digest="same")

    assert not before.runs_as(log.fleet.models[id].newest)
