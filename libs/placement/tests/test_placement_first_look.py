"""A ranking that answers from the fleet's index says the same as one that asks every node, to the last count."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts.digest import files_digest
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FileFound, FileMissing, FilesCame, PressureChanged, Reported
from weft_contracts.facts.node import Assigned, Capped, Cordoned, Draining, FilesWanted, Labelled, Removed, Unhealthy
from weft_contracts.facts.source import BuiltinSource, HfSource, PathSource, SimulatedSource, SourceFile
from weft_contracts.facts.values import (
    Backend,
    Caps,
    Device,
    DeviceClaim,
    Hardware,
    Installs,
    Member,
    ModelSpec,
    VramBudget,
    Weights,
)
from weft_contracts.formats import READS
from weft_contracts.ids import InspectionId, NodeId, ReplicaId
from weft_contracts.subjects import machine, node
from weft_fleet import Fleet, NodeAssignments, NodeView
from weft_placement import (
    BALANCED,
    BINPACK,
    BUILTIN_POLICIES,
    SPREAD,
    CandidateRanking,
    Circumstances,
    Placement,
    PlannedFleet,
    Policy,
    best_first,
    choose,
)
from weft_placement.claim import Need
from weft_placement.crowd_members import Order, Ordered
from weft_placement.decide import demand_for
from weft_placement.demand import Demand
from weft_placement.first_look import FirstLook
from weft_placement.level_scores import Key, LevelScores
from weft_placement.node_evaluator import Evaluation, NodeEvaluator
from weft_placement.node_index import NodeIndex
from weft_placement.node_record import NodeRecord
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
OWN = Policy("own", apart="nodes", idle=0.25, binpack=0.5, spread=0.25, snug=0.5, slots=3)
POLICIES = (BALANCED, BINPACK, SPREAD, OWN, Policy("zoned", binpack=1.0))


@dataclass(frozen=True)
class Machine:
    """What one node of a random fleet is."""

    devices: int
    memory: int
    processor: bool
    zone: str
    share: float | None
    odd: bool
    installs: bool


MACHINES = st.builds(
    Machine,
    devices=st.sampled_from([0, 1, 2, 4]),
    memory=st.sampled_from([8, 24]),
    processor=st.booleans(),
    zone=st.sampled_from(["", "a", "b"]),
    share=st.sampled_from([None, None, None, 0.5]),
    odd=st.sampled_from([False, False, False, True]),
    installs=st.booleans(),
)
WEIGHTS = Weights(
    format="gguf", weight_bytes=5 * GIB, kv_bytes_per_token=1 << 16, layers=32, heads=32, kv_heads=8, fingerprint="f"
)
HUB = HfSource(repository="Qwen/Qwen3-0.6B-GGUF", revision="1" * 40, file="Q8_0")
FETCHED = ModelSpec(
    source=HUB,
    engine="llama.cpp",
    weights=WEIGHTS,
    files=(SourceFile(name="one.gguf", size=4 * GIB),),
    context_tokens=2048,
)


def fleets(machines: st.SearchStrategy[Machine], least: int) -> st.SearchStrategy[list[Machine]]:
    """Few kinds of machines, so that many nodes are alike."""
    kinds = st.lists(machines, min_size=1, max_size=2)
    return kinds.flatmap(lambda kinds: st.lists(st.sampled_from(kinds), min_size=least, max_size=12))


FLEETS = fleets(MACHINES, 2)
STEPS: list[Fact] = [
    Cordoned(),
    Unhealthy(silent_for=5),
    Draining(why="admin", deadline_s=60),
    Labelled(labels={"pool": "day"}),
    Labelled(labels={"zone": "b"}),
    Labelled(labels={"zone": None}),
    Capped(caps=Caps(replicas_per_model=1)),
    Capped(caps=Caps(vram_budget=VramBudget(share=0.25))),
    Removed(why="sold"),
    PressureChanged(device=0, bytes=5 * GIB),
    PressureChanged(device=1, bytes=3 * GIB),
    FilesCame(files="b" * 64, bytes=1),
    FilesCame(files=files_digest(FETCHED), bytes=4 * GIB),
    FilesWanted(files=files_digest(FETCHED), source=HUB, listed=FETCHED.files, bytes=4 * GIB),
    FilesWanted(files="c" * 64, source=HUB, listed=FETCHED.files, bytes=7 * GIB),
]
SIMULATED: dict[str, object] = {"source": SimulatedSource(), "engine": "simulated"}
SMALL: dict[str, object] = {
    "source": BuiltinSource(name="tiny"),
    "engine": "llama.cpp",
    "weights": WEIGHTS,
    "context_tokens": 2048,
}
LARGE: dict[str, object] = {
    "source": BuiltinSource(name="tiny"),
    "engine": "vllm",
    "weights": WEIGHTS,
    "context_tokens": 4096,
}
SPECS: list[dict[str, object]] = [
    {**SIMULATED, "engine_args": {"memory_bytes": 3 * GIB}},
    {**SIMULATED, "engine_args": {"memory_bytes": 7 * GIB}, "strategy": "spread"},
    {**SIMULATED, "engine_args": {"memory_bytes": 20 * GIB}, "selector": {"pool": "day"}},
    {**SIMULATED, "engine_args": {"memory_bytes": 3 * GIB}, "selector": {"!pool": ""}, "spread_all": True},
    SMALL,
    {"source": PathSource(path="/m.gguf"), "engine": "llama.cpp", "weights": WEIGHTS, "context_tokens": 4096},
    {"source": PathSource(path="/m"), "engine": "vllm", "weights": WEIGHTS, "context_tokens": 16384},
    FETCHED.model_dump(),
    {
        **LARGE,
        "engine_args": {"gpu_memory_utilization": 0.6},
    },
    {
        **LARGE,
        "engine_args": {"tensor_parallel_size": 2},
    },
    {
        **SMALL,
        "engine_args": {"gpu_layers": 0},
    },
    {**SIMULATED, "engine_args": {"memory_bytes": 3 * GIB}, "capability": ("8.9",)},
    {**SIMULATED, "engine_args": {"memory_bytes": 3 * GIB}, "anti_affinity": "front"},
    {**SIMULATED, "engine_args": {"memory_bytes": 3 * GIB}, "layout": {"gpus": ["n-01:0", "n-02:1"]}},
    {**SIMULATED, "engine_args": {"memory_bytes": 30 * GIB}, "layout": {"distributed": True}},
    {**LARGE, "layout": {"tensor_parallel": 2}},
    {**LARGE, "layout": {"gpus_per_replica": 2}},
    {**SMALL, "layout": {"cpu_offload": False}},
]
OTHERS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 3), st.sampled_from([1, 2, 5, 7, 24]), st.booleans()), max_size=12
)


def report(given: Machine, number: int) -> Reported:
    """What such a machine says of itself."""
    devices: list[Device] = []
    if given.processor:
        devices.append(Device(index=0, vendor="cpu", name="cpu", memory=(16 + number) * GIB))
    first = len(devices)
    vendors = ("nvidia", "amd") if given.odd else ("nvidia",)
    for index in range(given.devices):
        vendor, size = vendors[index % len(vendors)], (given.memory + (index if given.odd else 0)) * GIB
        devices.append(
            Device(
                index=first + index,
                vendor=vendor,
                name="card",
                memory=size,
                uuid=f"u{number}-{index}",
                compute_capability="9.0" if (number + index) % 3 else "8.0",
            )
        )
    engines = () if given.installs else tuple(BUILTIN)
    backends = tuple(Backend(engine=each, version="1", vendors=("cpu", "nvidia")) for each in engines)
    return Reported(
        hardware=Hardware(cpus=8, memory=64 * GIB, disk_free=(6 + number) * GIB, devices=tuple(devices)),
        backends=backends,
        builtins=("tiny",) if number < 10 else (),
        agent_version="1",
        reads=dict(READS) if number not in (2, 9, 10, 11) else {},
        installs=Installs(disk_free=(number % 4) * 8 * GIB) if given.installs else None,
    )


def a_log(machines: Sequence[Machine], spec: dict[str, object]) -> FleetLog:
    """A fleet of these machines, a model of this spec that waits, and one whose replicas lie about."""
    log = FleetLog()
    for number, each in enumerate(machines):
        id = log.node(f"{number:02}", labels={"zone": each.zone} if each.zone else {})
        log.add(machine(id), report(each, number))
        if each.share is not None:
            log.add(node(id), Capped(caps=Caps(vram_budget=VramBudget(share=each.share))))
    log.model("new", ModelSpec.model_validate(spec), replicas=4)
    log.model("other", ModelSpec.model_validate({**SPECS[0], "anti_affinity": "front"}), replicas=12)
    return log


def answers(number: int, source: str) -> Fact:
    """What a node says when it is asked for a file."""
    if number % 3 == 0:
        return FileMissing(inspection=InspectionId(f"i{number}"), source=source, reason="no such file")
    size = 1 if number % 3 == 1 else 2
    found = WEIGHTS if size == 1 else WEIGHTS.model_copy(update={"fingerprint": "another"})
    return FileFound(inspection=InspectionId(f"i{number}"), source=source, size=1, weights=found)


def plan(
    fleet: Fleet, planned: PlannedFleet, others: Sequence[tuple[int, int, int, bool]], ids: Sequence[NodeId]
) -> None:
    """Replicas that lie about: on which node and device, of how many GiB, and whether of the model itself."""
    for number, (at, device, size, own) in enumerate(others, start=1):
        model = "new" if own and number < 4 else "other"
        view = fleet.replicas[ReplicaId(f"m-{model}-{1 + number % 3 if model == 'new' else number}")]
        claims = (DeviceClaim(index=device, bytes=size * GIB),)
        planned.plan(view, (Member(node=ids[at % len(ids)], rank=0, devices=claims),), view.cause)


def hold(log: FleetLog, others: Sequence[tuple[int, int, int, bool]], ids: Sequence[NodeId]) -> None:
    """The same in the log, all of the other model."""
    for number, (at, device, size, _) in enumerate(others, start=1):
        id, view = ids[at % len(ids)], log.fleet.replicas[ReplicaId(f"m-other-{number}")]
        held = Assigned(
            replica=view.id,
            model=view.model,
            model_name="other",
            revision=1,
            digest=view.digest,
            epoch=1,
            members=(Member(node=id, rank=0, devices=(DeviceClaim(index=device, bytes=size * GIB),)),),
            spec=ModelSpec.model_validate(SPECS[0]),
        )
        log.add(node(id), held)


def tell(log: FleetLog, id: NodeId, fact: Fact) -> None:
    """A fact of a node, or of its machine."""
    told = isinstance(fact, PressureChanged | FilesCame | FileFound | FileMissing)
    log.add(machine(id) if told else node(id), fact)


def agree(fleet: Fleet, replica: ReplicaId, demand: Demand, policy: Policy, planned: PlannedFleet) -> None:
    """Both ways say the same of one replica, with and without nodes to avoid, however few are put in order at first."""
    plain = CandidateRanking(demand, policy)
    assert planned.index is not None
    index, planned.index = planned.index, None
    index.follow(fleet)
    plain.sync(planned)
    planned.index = index
    FirstLook(NodeEvaluator(demand, policy), policy, planned, index)  # no node is otherwise than its class
    view = fleet.replicas[replica]
    outcome = choose(fleet, view, plain, Circumstances(1.0, 2))
    for few in (1, 3, best_first.AT_FIRST):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(best_first, "AT_FIRST", few)
            quick = CandidateRanking(demand, policy)
            quick.sync(planned)
            assert outcome == choose(fleet, view, quick, Circumstances(1.0, 2))
            assert [each.node for each in plain.candidates()] == [each.node for each in quick.candidates()]
        assert plain.group() == quick.group()
        if isinstance(outcome, Placement):
            aside = {str(member.node): "is set aside" for member in outcome.members}
            other = choose(fleet, view, plain, Circumstances(1.0, 2), aside)
            assert other == choose(fleet, view, quick, Circumstances(1.0, 2), aside)


@settings(max_examples=40, deadline=None)
@given(
    machines=FLEETS,
    spec=st.sampled_from(SPECS),
    policy=st.sampled_from(POLICIES),
    others=OTHERS,
    steps=st.lists(st.tuples(st.integers(0, 11), st.sampled_from([*STEPS, None])), max_size=8),
    need=st.sampled_from([None, None, None, Need(5 * GIB, GIB, 8, overhead=GIB, host_overhead=16 * GIB)]),
)
def test_a_first_look_says_what_asking_every_node_says(
    machines: list[Machine],
    spec: dict[str, object],
    policy: Policy,
    others: list[tuple[int, int, int, bool]],
    steps: list[tuple[int, Fact | None]],
    need: Need | None,
):
    log, index = a_log(machines, spec), NodeIndex()
    ids = [NodeId(f"n-{number:02}") for number in range(len(machines))]
    replica = ReplicaId("m-new-1")
    planned = PlannedFleet(log.fleet, index)
    demand = demand_for(log.fleet, log.fleet.replicas[replica], policy)
    demand = demand if need is None else replace(demand, need=need)
    agree(log.fleet, replica, demand, policy, planned)
    plan(log.fleet, planned, others, ids)
    agree(log.fleet, replica, demand, policy, planned)
    source = demand.source
    for at, fact in steps:
        tell(log, ids[at % len(ids)], answers(at, source) if fact is None else fact)
        agree(log.fleet, replica, demand, policy, PlannedFleet(log.fleet, index))


LARGER = fleets(
    st.builds(
        Machine,
        devices=st.sampled_from([1, 2, 4]),
        memory=st.sampled_from([24, 24, 8]),
        processor=st.booleans(),
        zone=st.sampled_from(["", "a"]),
        share=st.sampled_from([None, None, None, 0.5]),
        odd=st.sampled_from([False, False, False, False, True]),
        installs=st.sampled_from([False, False, False, True]),
    ),
    4,
)
"""Fleets with room for groups."""
SPANNING = st.fixed_dictionaries(
    {
        "devices": st.sampled_from([None, None, None, 1, 2]),
        "stages": st.sampled_from([None, None, None, 2, 3]),
        "wished": st.sampled_from([None, None, 4, 6]),
        "preferred": st.sampled_from([frozenset[NodeId](), frozenset({NodeId("n-01"), NodeId("n-05")})]),
    }
)
CHOSEN = {NodeId("n-00"): frozenset({0, 1}), NodeId("n-01"): frozenset({0}), NodeId("n-03"): frozenset({1, 2})}
BY_HAND: dict[str, object] = {"devices": 3, "by_hand": True, "chosen": CHOSEN}
NEEDS = st.builds(
    Need,
    weights=st.sampled_from([12 * GIB, 30 * GIB, 70 * GIB, 130 * GIB]),
    kv=st.sampled_from([0, GIB]),
    kv_heads=st.just(8),
    fraction=st.sampled_from([None, None, 0.5, 0.9]),
    overhead=st.sampled_from([0, GIB]),
    host_overhead=st.sampled_from([0, 0, 5 * GIB, 9 * GIB]),
    layers=st.sampled_from([0, 32]),
    place=st.sampled_from(["anywhere", "accelerator"]),
)


@settings(max_examples=60, deadline=None)
@given(
    machines=LARGER,
    spec=st.sampled_from([LARGE, SPECS[0], SPECS[0], {**LARGE, "source": HUB, "files": FETCHED.files}]),
    spanning=st.one_of(SPANNING, SPANNING, SPANNING, st.just(BY_HAND)),
    need=NEEDS,
    policy=st.sampled_from(POLICIES),
    held=OTHERS,
    others=OTHERS,
    steps=st.lists(st.tuples(st.integers(0, 11), st.sampled_from(STEPS)), max_size=4),
)
def test_a_first_look_finds_the_group_that_asking_every_node_finds(
    machines: list[Machine],
    spec: dict[str, object],
    spanning: dict[str, object],
    need: Need,
    policy: Policy,
    held: list[tuple[int, int, int, bool]],
    others: list[tuple[int, int, int, bool]],
    steps: list[tuple[int, Fact]],
):
    log, index = a_log(machines, spec), NodeIndex()
    ids = [NodeId(f"n-{number:02}") for number in range(len(machines))]
    hold(log, held, ids)
    replica, planned = ReplicaId("m-new-1"), PlannedFleet(log.fleet, index)
    made = demand_for(log.fleet, log.fleet.replicas[replica], policy)
    demand = replace(made, need=need, groups=True, **spanning)  # pyright: ignore[reportArgumentType] - its fields
    agree(log.fleet, replica, demand, policy, planned)
    plan(log.fleet, planned, others, ids)
    agree(log.fleet, replica, demand, policy, planned)
    for at, fact in steps:
        tell(log, ids[at % len(ids)], fact)
        agree(log.fleet, replica, demand, policy, PlannedFleet(log.fleet, index))


PLAIN = Machine(4, 24, processor=True, zone="a", share=None, odd=False, installs=False)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[NodeId]:
    """The nodes that are evaluated, as they are."""
    found: list[NodeId] = []
    evaluate = NodeEvaluator.evaluate

    def noted(self: NodeEvaluator, view: NodeView, assigned: NodeAssignments) -> Evaluation:
        found.append(view.id)
        return evaluate(self, view, assigned)

    monkeypatch.setattr(NodeEvaluator, "evaluate", noted)
    return found


def shape(index: NodeIndex) -> object:
    """All that an index holds; a class is its nodes."""
    records = {
        id: (each.crowd[1:], [getattr(each, name) for name in NodeRecord.__slots__ if name != "crowd"])
        for id, each in index.records.items()
    }
    crowds = {frozenset(each.records) for each in index.crowds.values()}
    kinds = {
        frozenset(id for id, each in index.records.items() if each.crowd.kind is kind)
        for kind in {each.crowd.kind for each in index.records.values()}
    }
    return records, crowds, kinds, dict(index.holders), dict(index.fetched), dict(index.told)


ORDERS = (
    *(Order("id"), Order("host"), Order("fills"), Order("fills and host")),
    *(Order(by, devices) for by in ("free", "sum") for devices in (1, 2, 4)),
)


def ordered(index: NodeIndex) -> dict[frozenset[NodeId], list[Sequence[Ordered]]]:
    """Every crowd's nodes in every order, which are made where they weren't."""
    crowds = (each for each in index.crowds.values() if all(len(node.free) >= 4 for node in each.records.values()))
    return {frozenset(each.records): [each.ordered(order) for order in ORDERS] for each in crowds}


def test_an_index_that_followed_the_log_is_as_one_made_anew():
    log, index = a_log([PLAIN] * 6, SPECS[4]), NodeIndex()
    for number, fact in enumerate([*STEPS, answers(1, "/m"), answers(2, "/m"), answers(3, "/m"), *STEPS]):
        index.follow(log.fleet)
        ordered(index)
        tell(log, NodeId(f"n-{number * 5 % 6:02}"), fact)
    index.follow(log.fleet)
    anew = NodeIndex()
    anew.follow(log.fleet)
    assert shape(anew) == shape(index)
    assert ordered(anew) == ordered(index)


@settings(max_examples=40, deadline=None)
@given(
    held=OTHERS,
    steps=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 4), st.sampled_from([0, 1, 3, 20, 30])), max_size=12),
)
def test_orders_that_were_asked_for_are_kept_as_they_would_be_made(
    held: list[tuple[int, int, int, bool]], steps: list[tuple[int, int, int]]
):
    log, index = a_log([PLAIN] * 6, SPECS[4]), NodeIndex()
    ids = [NodeId(f"n-{number:02}") for number in range(6)]
    index.follow(log.fleet)
    ordered(index)
    hold(log, held, ids)
    for at, device, size in steps:
        index.follow(log.fleet)
        ordered(index)
        tell(log, ids[at % 6], PressureChanged(device=device, bytes=size * GIB))
    index.follow(log.fleet)
    anew = NodeIndex()
    anew.follow(log.fleet)
    assert ordered(anew) == ordered(index)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_nodes_of_one_crowd_that_hold_it_on_more_devices_than_others_or_on_none_are_told_apart(policy: Policy):
    # given, of four devices: two that hold a half and one alone; one; none; and a full node that is planned for
    log, index = a_log([PLAIN] * 8, LARGE), NodeIndex()
    taken = {0: 2, 1: 3, 2: 3, 3: 4, 4: 4}
    for number, full in taken.items():
        for device in range(full):
            tell(log, NodeId(f"n-{number:02}"), PressureChanged(device=1 + device, bytes=(12 + number) * GIB))
    planned = PlannedFleet(log.fleet, index)
    view = log.fleet.replicas[ReplicaId("m-other-1")]
    claims = tuple(DeviceClaim(index=1 + device, bytes=24 * GIB) for device in range(4))
    planned.plan(view, (Member(node=NodeId("n-05"), rank=0, devices=claims),), view.cause)
    # when, then
    made = demand_for(log.fleet, log.fleet.replicas[ReplicaId("m-new-1")], policy)
    for size in (26, 30, 36):
        demand = replace(made, need=Need(size * GIB, 0, 8, place="accelerator"))
        agree(log.fleet, ReplicaId("m-new-1"), demand, policy, planned)


@pytest.mark.parametrize("name", ["balanced", "binpack", "spread"])
@pytest.mark.parametrize("spec", [SPECS[0], LARGE, {**LARGE, "engine_args": {"tensor_parallel_size": 2}}])
def test_where_all_hold_it_only_the_best_are_looked_at(
    name: str, spec: dict[str, object], monkeypatch: pytest.MonkeyPatch
):
    # given nodes of which no two have as much free
    log, index = a_log([PLAIN] * 60, spec), NodeIndex()
    for number in range(60):
        tell(log, NodeId(f"n-{number:02}"), PressureChanged(device=1 + number % 4, bytes=(number << 20) + 1))
    # when
    looked: list[int] = []
    keys = LevelScores.keys

    def noted(self: LevelScores, records: Collection[NodeRecord]) -> Iterable[Key]:
        looked.append(len(records))
        return keys(self, records)

    monkeypatch.setattr(LevelScores, "keys", noted)
    agree_on_first(log, index, BUILTIN_POLICIES[name])
    # then
    assert [] == looked


def agree_on_first(log: FleetLog, index: NodeIndex, policy: Policy) -> None:
    """Both ways choose the same, with the same receipt."""
    view = log.fleet.replicas[ReplicaId("m-new-1")]
    demand = demand_for(log.fleet, view, policy)
    outcomes: list[object] = []
    for planned in (PlannedFleet(log.fleet, index), PlannedFleet(log.fleet)):
        ranking = CandidateRanking(demand, policy)
        ranking.sync(planned)
        outcomes.append(choose(log.fleet, view, ranking, Circumstances(1.0, 2)))
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], Placement)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_first_look_evaluates_the_best_nodes_and_few_others(asked: list[NodeId], policy: Policy):
    log, index = a_log([PLAIN, replace(PLAIN, zone="b")] * 100, SPECS[4]), NodeIndex()
    view = log.fleet.replicas[ReplicaId("m-new-1")]
    ranking = CandidateRanking(demand_for(log.fleet, view, policy), policy)
    ranking.sync(PlannedFleet(log.fleet, index))
    assert isinstance(choose(log.fleet, view, ranking, Circumstances(1.0, 2)), Placement)
    assert 8 <= len(set(asked)) <= 16
    assert len(asked) == len(set(asked))


def test_a_first_look_for_a_group_evaluates_its_nodes_and_few_others(asked: list[NodeId]):
    log, index = a_log([PLAIN] * 100, LARGE), NodeIndex()
    view = log.fleet.replicas[ReplicaId("m-new-1")]
    demand = demand_for(log.fleet, view, BALANCED)
    need = Need(150 * GIB, 0, 8, place="accelerator", layers=32)
    ranking = CandidateRanking(replace(demand, need=need, groups=True), BALANCED)
    ranking.sync(PlannedFleet(log.fleet, index))
    outcome = choose(log.fleet, view, ranking, Circumstances(1.0, 2))
    assert isinstance(outcome, Placement)
    assert 2 == len(outcome.members)
    assert len(asked) <= 6


def test_a_ranking_that_is_asked_often_evaluates_every_node_once_and_then_what_changed(asked: list[NodeId]):
    log, index = a_log([PLAIN] * 100, SPECS[0]), NodeIndex()
    view = log.fleet.replicas[ReplicaId("m-new-1")]
    ranking = CandidateRanking(demand_for(log.fleet, view, BALANCED), BALANCED)
    by_round: list[int] = []
    for number in range(20):
        asked.clear()
        ranking.sync(PlannedFleet(log.fleet, index))
        assert isinstance(choose(log.fleet, view, ranking, Circumstances(1.0, 2)), Placement)
        by_round.append(len(asked))
        log.add(node(NodeId(f"n-{number:02}")), Cordoned())
    assert 100 == by_round.pop(by_round.index(max(by_round)))
    assert max(by_round) <= 16
    assert [1] * 5 == by_round[-5:]


@pytest.mark.parametrize("number", range(len(SPECS)))
def test_one_node_that_differs_from_others_of_its_kind_is_told_from_them(number: int):
    # given nodes of one kind, of which nothing but these facts tells them apart, each said of another node
    policies = (BALANCED, BINPACK, SPREAD)
    for place, fact in enumerate([*STEPS, answers(1, "/m.gguf"), answers(3, "/m.gguf")]):
        log, index = a_log([PLAIN] * 8, SPECS[number]), NodeIndex()
        for at, each in ((3 + place % 3, fact), (7, STEPS[4])):
            tell(log, NodeId(f"n-{at:02}"), each)
        # when, then
        replica, policy = ReplicaId("m-new-1"), policies[place % 3]
        for need in (None, Need(5 * GIB, GIB, 8, overhead=GIB, host_overhead=18 * GIB)):
            demand = demand_for(log.fleet, log.fleet.replicas[replica], policy)
            demand = demand if need is None else replace(demand, need=need)
            agree(log.fleet, replica, demand, policy, PlannedFleet(log.fleet, index))


def test_a_first_look_goes_to_the_zone_with_fewer_of_the_model():
    log, index = a_log([PLAIN, replace(PLAIN, zone="b")] * 4, SPECS[0]), NodeIndex()
    planned = PlannedFleet(log.fleet, index)
    one, two = (ReplicaId(f"m-new-{number}") for number in (1, 2))
    view = log.fleet.replicas[one]
    planned.plan(view, (Member(node=NodeId("n-00"), rank=0, devices=(DeviceClaim(index=1, bytes=GIB),)),), view.cause)
    agree(log.fleet, two, demand_for(log.fleet, view, BALANCED), BALANCED, planned)
