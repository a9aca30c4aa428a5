"""What each filter says of a node, and in which order."""

from collections.abc import Callable

import pytest
from weft_contracts.engines.builtin import LLAMA_CPP
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FileFound, FileMissing, Reported
from weft_contracts.facts.mesh import EngineProfileSet
from weft_contracts.facts.node import Assigned, Cordoned, Draining, Healthy, Labelled, Removed, Unhealthy, WentOffline
from weft_contracts.facts.source import BuiltinSource, PathSource, SimulatedSource
from weft_contracts.facts.values import Backend, Member, ModelSpec, Weights
from weft_contracts.ids import InspectionId, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import MESH, Aggregate, machine, node
from weft_placement import NoPlace, Placement, Policy, decide_placement
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
TINY = Weights(format="gguf", weight_bytes=1_000_000, kv_bytes_per_token=100)
SIMULATED = ModelSpec(source=SimulatedSource(), engine="simulated")
BUILTIN = ModelSpec(source=BuiltinSource(name="tiny"), engine="llama.cpp", weights=TINY)
TOLD = LLAMA_CPP.model_copy(update={"name": "told"})
OTHER = Weights(format="gguf", weight_bytes=2, kv_bytes_per_token=1)
AT_PATH = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", weights=TINY)
INSPECTION = InspectionId("i-1")
FOUND = FileFound(inspection=INSPECTION, source="path:/m", size=1, weights=TINY)
MISSING = FileMissing(inspection=INSPECTION, source="path:/m", reason="no such file")


def refusals(log: FleetLog, spec: ModelSpec, avoid: tuple[str, ...] = (), *, slots: int = 64) -> dict[str, int]:
    id = log.model("toy", spec)
    log.scale(id, 1, avoid=avoid)
    replica = next(reversed(log.fleet.replicas))
    outcome = decide_placement(log.fleet, replica, Policy(slots=slots), now=1.0, seed=0)
    assert isinstance(outcome, NoPlace), outcome
    return outcome.receipt.refusals


def taken(log: FleetLog, spec: ModelSpec) -> bool:
    log.model("toy", spec, replicas=1)
    replica = next(reversed(log.fleet.replicas))
    return isinstance(decide_placement(log.fleet, replica, Policy(), now=1.0, seed=0), Placement)


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        (Draining(why="admin", deadline_s=1), "is draining"),
        (Cordoned(), "is cordoned"),
        (Unhealthy(silent_for=5), "is unhealthy"),
        (WentOffline(silent_for=9), "is offline"),
    ],
)
def test_a_node_that_takes_nothing_new_says_why(fact: Fact, reason: str):
    log = FleetLog()
    log.add(node(log.node("a", GIB)), fact)
    assert {reason: 1} == refusals(log, SIMULATED)


def test_an_agent_runs_no_models():
    log = FleetLog()
    log.node("a", GIB, kind="agent")
    assert {"is of the kind agent, which runs no models": 1} == refusals(log, SIMULATED)


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ({"zone": "1"}, None),
        ({"zone": "2"}, "lacks the label zone=2"),
        ({"gpu": ""}, "lacks the label gpu="),
        ({"!zone": ""}, "bears the label zone"),
        ({"!gpu": ""}, None),
    ],
)
def test_the_selector_wants_labels_and_forbids_them(selector: dict[str, str], reason: str | None):
    log = FleetLog()
    log.node("a", GIB, labels={"zone": "1"})
    spec = SIMULATED.model_copy(update={"selector": selector})
    if reason is None:
        assert taken(log, spec)
    else:
        assert {reason: 1} == refusals(log, spec)


@pytest.mark.parametrize(
    ("facts", "spec", "reason"),
    [
        ((), AT_PATH, "has not answered yet whether it holds path:/m"),
        ((MISSING,), AT_PATH, "cannot load path:/m: no such file"),
        ((FOUND,), AT_PATH, None),
        ((FOUND, MISSING), AT_PATH, "cannot load path:/m: no such file"),
        (
            (FOUND,),
            AT_PATH.model_copy(update={"weights": OTHER}),
            "holds another file at path:/m",
        ),
        ((), BUILTIN, None),
        ((), BUILTIN.model_copy(update={"source": BuiltinSource(name="other")}), "does not ship other"),
        ((), SIMULATED, None),
    ],
)
def test_a_node_needs_the_models_files(facts: tuple[Fact, ...], spec: ModelSpec, reason: str | None):
    log = FleetLog()
    id = log.node("a", GIB)
    for fact in facts:
        log.add(machine(id), fact)
    if reason is None:
        assert taken(log, spec)
    else:
        assert {reason: 1} == refusals(log, spec)


def test_a_node_needs_a_backend_of_the_engine():
    log = FleetLog()
    log.node("a", GIB, engines=("simulated",))
    assert {"has no llama.cpp backend": 1} == refusals(log, BUILTIN)


@pytest.mark.parametrize(
    ("engine", "said", "reason"),
    [
        ("llama.cpp", "", None),  # a worker of before profiles had digests
        ("llama.cpp", LLAMA_CPP.digest, None),
        ("llama.cpp", "another", "has another profile of llama.cpp than the mesh"),
        ("told", TOLD.digest, None),
        ("told", "", "has another profile of told than the mesh"),
        ("told", LLAMA_CPP.digest, "has another profile of told than the mesh"),
    ],
)
def test_a_nodes_profile_of_the_engine_must_be_the_meshs(engine: str, said: str, reason: str | None):
    # given a mesh that was told of an engine, and a node that reports an engine by a digest
    log = FleetLog()
    log.add(MESH, EngineProfileSet(profile=TOLD))
    id = log.node("a", GIB, vendor="cpu", engines=())
    hardware = log.fleet.nodes[id].hardware
    assert hardware is not None
    backend = Backend(engine=engine, version="1", vendors=("cpu",), profile=said)
    log.add(machine(id), Reported(hardware=hardware, backends=(backend,), builtins=("tiny",), agent_version="1"))
    # then
    spec = BUILTIN.model_copy(update={"engine": engine})
    if reason is None:
        assert taken(log, spec)
    else:
        assert {reason: 1} == refusals(log, spec)


def test_a_node_that_an_earlier_replica_failed_on_is_avoided_whatever_else_it_says():
    log = FleetLog()
    a, b = log.node("a", GIB), log.node("b", GIB)
    log.add(node(b), Cordoned())
    reason = "is avoided: an earlier replica failed, was unloaded or runs there"
    assert {reason: 2} == refusals(log, SIMULATED, avoid=(a, b, "n-unknown"))


def test_a_removed_node_is_asked_nothing():
    log = FleetLog()
    log.add(node(log.node("a", GIB)), Removed(why="sold"))
    assert {} == refusals(log, SIMULATED)


def test_the_first_no_in_the_fixed_order_is_the_reason():
    log = FleetLog()
    id = log.node("a", 1, engines=())
    log.add(node(id), Unhealthy(silent_for=5))
    spec = AT_PATH.model_copy(update={"selector": {"zone": "1"}})
    steps: list[tuple[str, Callable[[], tuple[Aggregate, Fact]]]] = [
        ("lacks the label zone=1", lambda: (node(id), Labelled(labels={"zone": "1"}))),
        ("is unhealthy", lambda: (node(id), Healthy())),
    ]
    for reason, cure in steps:
        assert {reason: 1} == refusals(log, spec)
        log.add(*cure())
    assert {"has no llama.cpp backend": 1} == refusals(log, spec)


def test_a_node_holds_only_so_many_replicas():
    log = FleetLog()
    id = log.node("a", GIB)
    log.model("other", SIMULATED, replicas=1)
    fact = Assigned(
        replica=ReplicaId("m-other-1"),
        model=ModelId("m-other"),
        model_name="other",
        revision=1,
        digest="d",
        epoch=1,
        members=(Member(node=NodeId("n-a"), rank=0, devices=()),),
        spec=SIMULATED,
    )
    log.add(node(id), fact)
    assert {"holds 1 replicas already": 1} == refusals(log, SIMULATED, slots=1)


def test_a_node_takes_the_last_replica_that_its_slots_allow():
    log = FleetLog()
    id = log.node("a", GIB)
    log.add(node(id), held(ReplicaId("m-other-1"), ModelId("m-other")))
    log.model("toy", SIMULATED, replicas=1)
    outcome = decide_placement(log.fleet, ReplicaId("m-toy-1"), Policy(slots=2), now=1.0, seed=0)
    assert isinstance(outcome, Placement)


def held(id: ReplicaId, model: ModelId) -> Assigned:
    return Assigned(
        replica=id,
        model=model,
        model_name="other",
        revision=1,
        digest="d",
        epoch=1,
        members=(Member(node=NodeId("n-a"), rank=0, devices=()),),
        spec=SIMULATED,
    )


def test_a_worker_of_an_earlier_version_is_placed_plain_arguments_and_no_lists_or_objects() -> None:
    # given
    log = FleetLog()
    id = log.node("a", GIB, vendor="cpu")
    structured = SIMULATED.model_copy(update={"engine_args": {"plugins": ["a"]}})
    # then
    reason = "has a worker of an earlier version, which can't read lists and objects in engine_args"
    assert {reason: 1} == refusals(log, structured)
    assert taken(log, SIMULATED)
    # when it is upgraded
    view = log.fleet.nodes[id]
    assert view.hardware is not None
    reads = {"node.assigned": 2}
    log.add(
        machine(id),
        Reported(hardware=view.hardware, backends=view.backends, builtins=(), agent_version="2", reads=reads),
    )
    # then
    assert taken(log, structured)
