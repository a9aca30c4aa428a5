"""A plan on a mesh: the scheduler's own answers, on a copy."""

from typing import Any

import pytest
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.mesh import PolicyChosen, PolicySet
from weft_contracts.facts.node import Cordoned
from weft_contracts.facts.replica import Evicted
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import Backend, Device, DeviceClaim, Hardware, Member, ModelSpec, Weights
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.policies import PlacementPolicy, PolicyWeights
from weft_contracts.subjects import MESH, machine, node, replica
from weft_placement import BALANCED, Placement, decide_placement
from weft_placement.plan import MOST_LIVE, Plan, PlanFault, live_outcomes, plan_of_outcomes
from weft_placement.set_aside import REASON
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
FILLS = PlacementPolicy(name="fills", apart="no", weights=PolicyWeights(binpack=1))


def a_node(log: FleetLog, name: str, *vrams: int, first: int = 0) -> NodeId:
    """With a processor, and accelerators that their vendor counts from `first`."""
    id = log.node(name, *(size * GIB for size in vrams))
    gpus = tuple(
        Device(index=1 + place, number=first + place, vendor="nvidia", name="gpu", memory=size * GIB)
        for place, size in enumerate(vrams)
    )
    host = Device(index=0, vendor="cpu", name="processor", memory=64 * GIB)
    backends = tuple(
        Backend(engine=name, version="1", vendors=("nvidia", "cpu")) for name in ("llama.cpp", "simulated")
    )
    hardware = Hardware(cpus=8, memory=64 * GIB, devices=(host, *gpus))
    log.add(
        machine(id),
        Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1", reads=dict(WORKERS_READ)),
    )
    return id


def a_mesh() -> FleetLog:
    log = FleetLog()
    a_node(log, "a", 24, first=4)
    a_node(log, "b", 24)
    return log


def no_files(path: str) -> Weights:
    raise ValueError(f"{path} does not exist")


def live(log: FleetLog, document: object = None, policy: str | None = None, **more: Any) -> Plan:
    before, position = log.fleet.digest(), log.fleet.position
    found = plan_of_outcomes(live_outcomes(log.fleet, document, no_files, policy, now=1.0, **more))
    assert (before, position) == (log.fleet.digest(), log.fleet.position)
    return found


def model(name: str, vram: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "engine": "llama.cpp", "claim": {"vram": vram * GIB}, **more}


def nodes_of(plan: Plan) -> list[str]:
    return [member.node for each in plan.placements for member in each.members]


def test_models_of_a_file_go_on_the_meshs_own_nodes_beside_what_runs_and_nothing_is_changed() -> None:
    log = a_mesh()

    found = live(log, {"models": [model("large", 20, replicas=2), model("small", 10)]})

    assert ["a", "b"] == nodes_of(found)
    assert {4: 20 * GIB} == found.placements[0].members[0].gpus
    (refused,) = found.refused
    assert ("small", 0) == (refused.model, refused.replica)
    assert "6.00 GiB short on gpu 4" in refused.nodes["a"]


def test_replicas_of_a_model_that_the_mesh_has_keep_apart_from_those_that_run() -> None:
    log = a_mesh()
    spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": GIB})
    log.model("m", spec, replicas=1)
    first = decide_placement(log.fleet, ReplicaId("m-m-1"), BALANCED, now=1.0, seed=0)
    assert isinstance(first, Placement)

    waiting = live(log)
    beside = live(log, {"models": [model("other", 1), model("m", 1, replicas=2)]})

    assert [("m", 1, "one-device")] == [(each.model, each.replica, each.rung) for each in waiting.placements]
    assert [log.fleet.nodes[first.members[0].node].name] == nodes_of(waiting)
    assert {"a", "b"} == set(nodes_of(beside)[1:])


def test_a_policy_is_the_meshs_own_by_default_or_one_for_all_that_is_asked_for() -> None:
    log = a_mesh()
    two = {"models": [model("m", 1, replicas=2)]}
    assert ["a", "b"] == nodes_of(live(log, two))
    assert ["a", "a"] == nodes_of(live(log, two, "binpack"))
    own = {**two, "policies": [{"name": "mine", "apart": "no", "weights": {"binpack": 1}}]}
    assert ["a", "a"] == nodes_of(live(log, own, "mine"))
    log.add(MESH, PolicySet(policy=FILLS), PolicyChosen(name="fills"))
    told = live(log, two)
    assert (["a", "a"], "fills") == (nodes_of(told), told.placements[0].policy)


def test_nodes_that_are_shut_or_set_aside_are_passed_over_and_say_why() -> None:
    log = a_mesh()
    log.add(node(NodeId("n-a")), Cordoned())
    one = {"models": [model("m", 1)]}
    assert ["b"] == nodes_of(live(log, one))
    (refused,) = live(log, one, set_aside={"n-b": REASON}).refused
    assert f"every node {REASON}" in refused.reason or "the nearest, a, is cordoned" in refused.reason


EMPTY: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("document", "policy", "said"),
    [
        ({"nodes": [{"id": "a"}]}, None, "nodes: is of the mesh, whose own fleet this is planned on: leave it out"),
        ({"running": [EMPTY]}, None, "running: is of the mesh"),
        ({"models": [model("m", 1, gpus=["c:0"])]}, None, "models[0].gpus[0]: there is no node c"),
        ({"models": [model("m", 1, gpus=["a:0"])]}, None, "models[0].gpus[0]: a has no gpu 0"),
        ({"models": [model("m", 1, policy="odd")]}, None, "models[0].policy: want one of balanced, binpack, spread"),
        ({"models": []}, "odd", "policy: odd is none: want one of balanced, binpack, spread"),
        (
            {"models": [model("m", 1, replicas=MOST_LIVE + 1)]},
            None,
            f"models: ask for {MOST_LIVE + 1} replicas, and {MOST_LIVE} are planned at once on a mesh",
        ),
        ({"models": [{"name": "m", "path": "m.gguf"}]}, None, "models[0].path: m.gguf does not exist"),
        ([], None, "the file: want an object with"),
    ],
)
def test_what_is_wrong_with_a_plan_on_a_mesh_is_told_with_its_field(
    document: Any, policy: str | None, said: str
) -> None:
    with pytest.raises(PlanFault) as fault:
        live(a_mesh(), document, policy)
    assert str(fault.value).startswith(said)


def test_room_that_is_kept_for_what_waits_is_its_own_and_nobody_elses() -> None:
    log = FleetLog()
    a_node(log, "a", 24)
    waits = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 20 * GIB})
    log.model("waits", waits, replicas=1)
    log.model("ended", waits, replicas=1)
    room = (Member(node=NodeId("n-a"), rank=0, devices=(DeviceClaim(index=1, bytes=20 * GIB),)),)
    kept = Evicted(why="idle", waiting=ReplicaId("m-waits-1"), model=ModelId("m-waits"), members=room, until=60.0)
    log.add(replica(ReplicaId("m-ended-1")), kept)

    assert ["waits"] == [each.model for each in live(log).placements]
    assert () == live(log, {"models": [model("other", 10, cpu_offload=False)]}).placements
