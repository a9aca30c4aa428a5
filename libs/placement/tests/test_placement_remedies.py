"""What would have to change: each set of changes that is told, made, gives the replica a place."""

import re
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.machine import FileFound, FileMissing, PressureChanged, Reported
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.facts.model import SpecAccepted
from weft_contracts.facts.node import (
    Approved,
    Assigned,
    Capped,
    Cordoned,
    CutOff,
    Draining,
    Healthy,
    Labelled,
    Resumed,
    Unassigned,
    Uncordoned,
    WentOffline,
)
from weft_contracts.facts.replica import Evicted, Placed
from weft_contracts.facts.run import Loading, Ready, Stopped
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import (
    Backend,
    Caps,
    Device,
    DeviceClaim,
    EngineName,
    Hardware,
    Member,
    ModelSpec,
    Vendor,
    VramBudget,
    Weights,
)
from weft_contracts.formats import WORKERS_READ
from weft_contracts.ids import Incarnation, InspectionId, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import MESH, machine, model, node, replica, run
from weft_placement import BALANCED, NoPlace, Placement, decide_placement
from weft_placement.remedies import Remedies, Remedy, Step, question_of, remedies
from weft_placement.remedies.remedy import weight_of
from weft_placement.remedies.search import MOST_ALIKE, MOST_TOLD
from weft_placement.remedies.smaller import largest
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
KV = 1 << 20
GGUF = Weights(
    format="gguf",
    weight_bytes=4 * GIB,
    kv_bytes_per_token=KV,
    layers=8,
    heads=8,
    kv_heads=8,
    layer_runs=(LayerRun(8, GIB // 2, KV // 8),),
)
TENSORS = Weights(format="safetensors", weight_bytes=8 * GIB, kv_bytes_per_token=KV // 4, layers=8, heads=8, kv_heads=8)
ASKED = InspectionId("i-1")
MODEL = ModelId("m-toy")


def simulated(size: int, **more: Any) -> ModelSpec:
    spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": size})
    return spec.model_copy(update=more)


def gguf(**more: Any) -> ModelSpec:
    spec = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", concurrency=4, weights=GGUF.without_layers)
    return spec.model_copy(update={"context_tokens": 4096, **more})


def tensors(**more: Any) -> ModelSpec:
    spec = ModelSpec(source=PathSource(path="/m"), engine="vllm", concurrency=4, weights=TENSORS)
    return spec.model_copy(update={"context_tokens": 4096, **more})


def there(log: FleetLog, id: NodeId, weights: Weights = GGUF) -> None:
    """The node says that it has the model's file."""
    log.add(machine(id), FileFound(inspection=ASKED, source="path:/m", size=weights.weight_bytes, weights=weights))


def run_one(log: FleetLog, name: str, size: int) -> ReplicaId:
    """A replica of another model, placed and assigned; none where it finds no place."""
    id = log.model(name, simulated(size), replicas=1)
    return place(log, ReplicaId(f"{id}-1"))


def place(log: FleetLog, id: ReplicaId) -> ReplicaId:
    outcome = decide_placement(log.fleet, id, BALANCED, now=1.0, seed=0)
    if isinstance(outcome, NoPlace):
        log.retire(id)
        return id
    view = log.fleet.replicas[id]
    digest, spec = log.fleet.spec_of(view)
    of = {"model": view.model, "revision": view.revision, "epoch": 1, "members": outcome.members}
    assigned = Assigned.model_validate(
        {**of, "replica": id, "model_name": log.fleet.models[view.model].name, "digest": digest, "spec": spec}
    )
    log.add(node(outcome.members[0].node), assigned)
    log.add(replica(id), Placed.model_validate({**of, "receipt": outcome.receipt}))
    return id


def waiting(log: FleetLog, spec: ModelSpec) -> ReplicaId:
    """A replica of the model `toy` that has no place."""
    log.model("toy", spec, replicas=1)
    id = ReplicaId("m-toy-1")
    assert isinstance(decide_placement(log.fleet, id, BALANCED, now=1.0, seed=0), NoPlace)
    return id


def asked(log: FleetLog, id: ReplicaId) -> Remedies:
    before = log.fleet.digest()
    found = remedies(question_of(log.fleet, log.fleet.replicas[id], BALANCED, now=1.0))
    assert before == log.fleet.digest()
    return found


def told(log: FleetLog, spec: ModelSpec) -> list[list[str]]:
    """What each remedy says, the smallest first."""
    return [[step.what for step in each.steps] for each in asked(log, waiting(log, spec)).found]


def make(log: FleetLog, remedy: Remedy) -> None:
    """All of its changes, as people and services would make them."""
    arguments: dict[str, Any] = {}
    for step in remedy.steps:
        arguments |= step.arguments
        if step.kind == "add":
            _add_node(log, step)
        elif step.kind == "extend":
            _add_nodes(log, step)
        elif step.node is not None:
            _make(log, step, step.node)
    if arguments:
        view = log.fleet.models[MODEL]
        fields = {name: value for name, value in arguments.items() if name in ModelSpec.model_fields}
        own = {name: value for name, value in arguments.items() if name not in fields}
        update = {**fields, "engine_args": {**view.spec.engine_args, **own}}
        if "gpu_layers" in own:  # as the reconciler keeps what nodes found
            update["weights"] = GGUF
        spec = view.spec.model_copy(update=update)
        log.add(model(MODEL), SpecAccepted(name="toy", revision=view.revision + 1, digest="after", spec=spec))
        log.scale(MODEL, 1)


def _make(log: FleetLog, step: Step, id: NodeId) -> None:
    view = log.fleet.nodes[id]
    last = step.command.split(" ")[-1]
    match step.kind:
        case "approve":
            log.add(node(id), Approved(by="t-1"))
            log.add(node(id), Healthy())
        case "uncordon":
            log.add(node(id), Uncordoned())
        case "resume":
            log.add(node(id), Resumed())
        case "start":
            log.add(node(id), Healthy())
        case "label":
            name, _, value = last.partition("=")
            log.add(node(id), Labelled(labels={name.removesuffix("-"): value if "=" in last else None}))
        case "cap":
            log.add(node(id), Capped(caps=view.caps.model_copy(update={"replicas_per_model": int(last)})))
        case "budget":
            assert "100%" == last
            log.add(node(id), Capped(caps=view.caps.model_copy(update={"vram_budget": VramBudget(share=1.0)})))
        case "install":
            assert view.hardware is not None
            vendors: tuple[Vendor, ...] = tuple({device.vendor for device in view.hardware.devices})
            engines: tuple[EngineName, ...] = ("llama.cpp", "simulated", "vllm")
            backends = tuple(Backend(engine=engine, version="1", vendors=vendors) for engine in engines)
            log.add(machine(id), Reported(hardware=view.hardware, backends=backends, builtins=(), agent_version="1"))
        case "file":
            spec = log.fleet.models[MODEL].spec
            log.add(machine(id), FileFound(inspection=ASKED, source="path:/m", size=1, weights=spec.weights))
        case "end":
            (gone,) = step.replicas
            log.retire(gone)
            log.add(node(id), Unassigned(replica=gone, deadline_s=1, why="not wanted"))
            log.add(run(id, gone), Stopped(epoch=1, why="retired"))
        case _:
            raise AssertionError(step)


def _add_nodes(log: FleetLog, step: Step) -> None:
    """As many as it says, like the one that it names."""
    found = re.match(r"add (a|\d+) nodes? like (\w+), ", step.what)
    assert found
    (like,) = (each for each in log.fleet.nodes.values() if each.name == found[2])
    assert like.hardware is not None
    for number in range(1 if found[1] == "a" else int(found[1])):
        log.node(f"new{number}", *(device.memory for device in like.hardware.devices), reads=WORKERS_READ)


def _add_node(log: FleetLog, step: Step) -> None:
    found = re.search(r"(\d+) (\w+) devices? of (\d+) GiB", step.what)
    memory = re.search(r"(\d+) GiB of memory", step.what)
    labels = dict(pair.split("=") for pair in step.what.partition(", labelled ")[2].split(",") if pair)
    count, vendor, size = (int(found[1]), found[2], int(found[3])) if found else (0, "cpu", 0)
    id = log.node("added", *[size * GIB] * count, vendor=vendor, labels=labels)
    view = log.fleet.nodes[id]
    assert view.hardware is not None
    devices = tuple(device.model_copy(update={"index": device.index + 1}) for device in view.hardware.devices)
    if memory:
        devices = (Device(index=0, vendor="cpu", name="processor", memory=int(memory[1]) * GIB), *devices)
    backends = tuple(each.model_copy(update={"vendors": (vendor,)}) for each in view.backends)
    hardware = Hardware(cpus=1, memory=1, devices=devices)
    log.add(machine(id), Reported(hardware=hardware, backends=backends, builtins=("tiny",), agent_version="1"))
    there(log, id, log.fleet.models[MODEL].spec.weights)


def has_place(log: FleetLog) -> bool:
    """Whether the model's newest replica has one now."""
    id = ReplicaId(f"m-toy-{log.fleet.models[MODEL].next_number - 1}")
    return isinstance(decide_placement(log.fleet, id, BALANCED, now=1.0, seed=0), Placement)


SHUT = {
    "cordoned": (node, Cordoned()),
    "draining": (node, Draining(why="admin", deadline_s=60)),
    "cut off": (node, CutOff(why="it was loud")),
    "offline": (node, WentOffline(silent_for=60)),
    "capped": (node, Capped(caps=Caps(vram_budget=VramBudget(bytes=GIB)))),
    "busy": (machine, PressureChanged(device=0, bytes=7 * GIB)),
    "without the file": (machine, FileMissing(inspection=ASKED, source="path:/m", reason="it isn't there")),
    "labelled": (node, Labelled(labels={"off": "1"})),
}
SPECS = {
    "simulated": simulated(6 * GIB, selector={"zone": "a", "!off": ""}),
    "gguf": gguf(selector={"!off": ""}),
    "tensors": tensors(engine_args={"gpu_memory_utilization": 0.9}),
    "parallel": tensors(engine_args={"tensor_parallel_size": 2}),
}


@settings(max_examples=80, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(2, 24), min_size=1, max_size=3), max_size=4),
    shut=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(sorted(SHUT))), max_size=8),
    others=st.lists(st.integers(1, 12), max_size=6),
    spec=st.sampled_from(sorted(SPECS)),
    bare=st.sets(st.integers(0, 3)),
)
def test_each_remedy_that_is_told_gives_a_place_once_its_changes_are_made(
    sizes: list[list[int]], shut: list[tuple[int, str]], others: list[int], spec: str, bare: set[int]
) -> None:
    def a_fleet() -> FleetLog:
        log = FleetLog()
        for index, devices in enumerate(sizes):
            engines: tuple[EngineName, ...] = ("simulated",) if index in bare else ("llama.cpp", "simulated", "vllm")
            id = log.node("abcd"[index], *(size * GIB for size in devices), engines=engines)
            there(log, id, SPECS[spec].weights if spec != "gguf" else GGUF)
        for number, size in enumerate(others):
            run_one(log, f"other-{number}", size * GIB)
        for index, what in shut:
            if index < len(sizes):
                of, fact = SHUT[what]
                log.add(of(NodeId(f"n-{'abcd'[index]}")), fact)
        log.model("toy", SPECS[spec], replicas=1)
        return log

    log = a_fleet()
    if has_place(log):
        event("it had a place")
        assert Remedies(fits=True) == asked(log, ReplicaId("m-toy-1"))
        return
    found = asked(log, ReplicaId("m-toy-1")).found
    event("nothing helps" if not found else "something helps")
    assert list(found) == sorted(found, key=lambda each: each.order)
    assert len(found) <= MOST_TOLD
    for remedy in found:
        for kind in remedy.kinds:
            event(kind)
        again = a_fleet()
        make(again, remedy)
        assert has_place(again), remedy


def test_a_shut_node_is_opened_and_of_several_alike_one_is_told_and_the_others_counted() -> None:
    log = FleetLog()
    for name in "abc":
        log.add(node(log.node(name, 8 * GIB)), Cordoned())

    (first, *_) = asked(log, waiting(log, simulated(GIB))).found

    assert ("uncordon a", "weft nodes uncordon a", 2) == (first.steps[0].what, first.steps[0].command, first.alike)


def test_changes_of_one_node_come_together_and_fewer_come_first() -> None:
    log = FleetLog()
    one, two = log.node("a", 8 * GIB, labels={"zone": "a"}), log.node("b", 8 * GIB)
    for id in (one, two):
        log.add(node(id), Cordoned())

    spec = simulated(GIB, selector={"zone": "a"})

    assert [["uncordon a"], ["label b with zone=a", "uncordon b"]] == told(log, spec)[:2]


def test_the_fewest_replicas_that_make_room_are_named_and_of_those_the_smallest() -> None:
    log = FleetLog()
    log.node("a", 12 * GIB)
    for name, size in (("small", 2), ("middle", 3), ("large", 6)):
        run_one(log, name, size * GIB)

    (first, *_) = asked(log, waiting(log, simulated(4 * GIB))).found

    # 1 GiB is free, so the middle one does it and the smallest doesn't
    assert [ReplicaId("m-middle-1")] == [id for step in first.steps for id in step.replicas]
    assert first.steps[0].what.startswith("one replica of middle fewer: m-middle-1 on a, which holds 3.00 GiB; it")
    assert "weft remove middle" == first.steps[0].command


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"max_replicas": 1}, "its number of replicas is told, with no --max above its --min"),
        ({"spread_all": True}, "it is wanted on all nodes that match"),
        ({"min_replicas": 1, "max_replicas": 4}, "no more of it serve than its minimum, 1"),
        ({"min_replicas": 0, "max_replicas": 4, "priority": 3}, "its priority 3 is above 0"),
        ({"min_replicas": 0, "max_replicas": 4}, ""),
    ],
)
def test_what_never_gives_way_by_itself_says_why(spec: dict[str, Any], why: str) -> None:
    log = FleetLog()
    id = log.node("a", 8 * GIB)
    log.model("other", simulated(6 * GIB, **spec), replicas=1)
    there = place(log, ReplicaId("m-other-1"))
    started = Incarnation("i1")
    ready = Ready(epoch=1, incarnation=started, port=1, engine="simulated", engine_version="1")
    log.add(run(id, there), Loading(epoch=1, incarnation=started), ready)

    (first, *_) = told(log, simulated(4 * GIB))

    never = f"; it never gives way by itself: {why}" if why else ""
    assert [f"one replica of other fewer: m-other-1 on a, which holds 6.00 GiB{never}"] == first


def test_room_that_is_kept_for_another_is_taken_until_it_is_kept_no_more() -> None:
    log = FleetLog()
    id = log.node("a", 8 * GIB)
    log.model("other", simulated(6 * GIB), replicas=1)
    log.model("old", simulated(GIB), replicas=1)
    room = (Member(node=id, rank=0, devices=(DeviceClaim(index=0, bytes=6 * GIB),)),)
    kept = Evicted(why="idle", waiting=ReplicaId("m-other-1"), model=ModelId("m-other"), members=room, until=60.0)
    log.add(replica(ReplicaId("m-old-1")), kept)
    log.model("toy", simulated(4 * GIB), replicas=1)
    toy, other = (log.fleet.replicas[ReplicaId(name)] for name in ("m-toy-1", "m-other-1"))

    before, after, own = (
        remedies(question_of(log.fleet, view, BALANCED, now=now))
        for view, now in ((toy, 59.0), (toy, 60.0), (other, 59.0))
    )

    assert "end what is kept for m-other-1 of other on a, which is 6.00 GiB" == before.found[0].steps[0].what
    assert (False, True, True) == (before.fits, after.fits, own.fits)


def test_two_replicas_end_where_no_single_one_makes_room_and_three_where_no_two_do() -> None:
    log = FleetLog()
    log.node("a", 12 * GIB)
    for number in range(4):
        run_one(log, f"m{number}", 3 * GIB)

    two, three = (
        [id for step in asked(log, id).found[0].steps for id in step.replicas]
        for id in (waiting(log, simulated(5 * GIB)), _next(log, simulated(8 * GIB)))
    )

    assert (2, 3) == (len(two), len(three))


def _next(log: FleetLog, spec: ModelSpec) -> ReplicaId:
    log.model("toy", spec, replicas=1)
    return ReplicaId("m-toy-2")


def test_a_models_own_replica_is_never_ended_for_another_of_it() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.model("toy", simulated(6 * GIB), replicas=2)
    place(log, ReplicaId("m-toy-1"))

    found = asked(log, ReplicaId("m-toy-2")).found

    assert ["add"] == [step.kind for each in found for step in each.steps]


def test_the_largest_context_and_the_most_requests_at_once_that_fit_are_told() -> None:
    # given room for the weights, what the engine takes, and 6 GiB of cache, where 16 GiB are asked for
    log = FleetLog()
    there(log, log.node("a", int(4.2 * GIB) + (768 << 20) + 6 * GIB + (1 << 20)))

    lines = [line for each in told(log, gguf()) for line in each]

    assert "a context of 1536 tokens instead of 4096 (--context 1536)" in lines
    assert "1 request at once in each replica (--concurrency 1)" in lines


def test_where_neither_context_nor_requests_alone_suffice_both_are_told_together() -> None:
    log = FleetLog()
    there(log, log.node("a", int(4.2 * GIB) + (768 << 20) + (300 << 20)))

    found = asked(log, waiting(log, gguf(concurrency=64, context_tokens=2048))).found

    assert ("concurrency", "context") in {each.kinds for each in found}


def test_a_lower_share_of_the_device_is_told_where_others_use_of_it() -> None:
    log = FleetLog()
    id = log.node("a", 40 * GIB)
    there(log, id, TENSORS)
    log.add(machine(id), PressureChanged(device=0, bytes=10 * GIB))

    lines = [line for each in told(log, tensors(engine_args={"gpu_memory_utilization": 0.9})) for line in each]

    assert "gpu_memory_utilization of 0.75 instead of 0.9 (--engine-arg gpu_memory_utilization=0.75)" in lines


def test_layers_are_divided_where_neither_memory_holds_the_whole() -> None:
    # given a node whose device holds a part, and whose memory holds the rest
    log = FleetLog()
    id = log.node("a", 3 * GIB)
    hardware = Hardware(
        cpus=1,
        memory=6 * GIB,
        devices=(
            Device(index=0, vendor="cpu", name="processor", memory=4 * GIB),
            Device(index=1, vendor="nvidia", name="gpu", memory=3 * GIB),
        ),
    )
    backend = Backend(engine="llama.cpp", version="1", vendors=("nvidia", "cpu"))
    log.add(machine(id), Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1"))
    there(log, id)

    lines = [line for each in told(log, gguf(concurrency=1, context_tokens=256)) for line in each]

    assert any(
        re.fullmatch(
            r"(\d) of its 8 layers on an accelerator, the rest in the machine's memory \(--engine-arg gpu_layers=\1\)",
            x,
        )
        for x in lines
    )


def test_a_fleet_without_nodes_is_told_which_to_add() -> None:
    log = FleetLog()

    assert [["add a node with 1 nvidia device of 12 GiB and 3 GiB of memory, labelled zone=a"]] == told(
        log, tensors(selector={"zone": "a"}, context_tokens=1024)
    )


def several_nodes(*sizes: tuple[int, ...]) -> FleetLog:
    """A mesh all of which reads of groups, and nodes a, b, … with devices of so many GiB."""
    log = FleetLog()
    log.add(MESH, *(FormatRaised(fact=fact, version=version) for fact, version in WORKERS_READ.items()))
    for place, devices in enumerate(sizes):
        log.node("abcdefgh"[place], *(size * GIB for size in devices), reads=WORKERS_READ)
    return log


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (40, "add a node like b, with 2 free devices of 16.00 GiB in all"),
        (90, "add 4 nodes like b, each with 2 free devices of 16.00 GiB in all"),
    ],
)
def test_a_group_that_lacks_nodes_is_told_how_many_more_like_the_largest_make_it(size: int, said: str) -> None:
    log = several_nodes((8,), (8, 8), (8, 8))
    id = waiting(log, simulated(size * GIB))

    more, alone = asked(log, id).found

    assert (["extend"], said) == ([step.kind for step in more.steps], more.steps[0].what)
    # it comes before the one node that would hold the whole, and no fewer do
    assert (["add"], True) == ([step.kind for step in alone.steps], more.adds)
    make(log, more)
    log.add(node(NodeId("n-new0")), Cordoned())
    assert isinstance(decide_placement(log.fleet, id, BALANCED, now=1.0, seed=0), NoPlace)
    log.add(node(NodeId("n-new0")), Uncordoned())
    found = decide_placement(log.fleet, id, BALANCED, now=1.0, seed=0)
    assert isinstance(found, Placement)
    assert len(found.members) > 2


def test_a_group_that_no_number_of_nodes_makes_is_told_none_and_one_that_has_its_place_nothing() -> None:
    log = several_nodes((8,), (8,))
    assert ["add"] == [
        step.kind for each in asked(log, waiting(log, simulated(1000 * GIB))).found for step in each.steps
    ]

    log = several_nodes((8,))
    id = waiting(log, simulated(12 * GIB))
    log.node("b", 8 * GIB, reads=WORKERS_READ)
    assert Remedies(fits=True) == asked(log, id)


def test_where_groups_may_not_be_said_yet_no_more_nodes_are_told() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB, reads=WORKERS_READ)
    assert ["add"] == [step.kind for each in asked(log, waiting(log, simulated(12 * GIB))).found for step in each.steps]


def test_of_many_nodes_that_refuse_for_one_reason_some_are_looked_at_and_the_others_counted() -> None:
    log = FleetLog()
    for number in range(MOST_ALIKE + 5):
        log.add(node(log.node(f"w{number:03}", 8 * GIB)), Cordoned())

    found = asked(log, waiting(log, simulated(GIB)))

    assert (5, MOST_ALIKE - 1) == (found.unseen, found.found[0].alike)


@pytest.mark.parametrize(("most", "limit", "found"), [(10, 7, 7), (10, 10, 10), (10, 0, 0), (1, 1, 1), (0, 5, 0)])
def test_the_largest_number_that_fits_is_found(most: int, limit: int, found: int) -> None:
    assert found == largest(most, lambda number: number <= limit)


def test_a_change_that_people_undo_weighs_least_and_a_new_machine_most() -> None:
    assert weight_of("uncordon") < weight_of("install") < weight_of("context") < weight_of("end") < weight_of("add")
    assert weight_of("add") == weight_of("extend")
