"""What each scorer says of a node, on its own scale from 0 to 1, and what their sum is."""

from dataclasses import replace

import pytest
from weft_contracts.commit import Cause
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.source import BuiltinSource, PathSource, SimulatedSource
from weft_contracts.facts.values import DeviceClaim, ModelSpec, Vendor, Weights
from weft_contracts.ids import CorrelationId, InspectionId, ModelId, ReplicaId
from weft_contracts.subjects import machine
from weft_fleet import Assignment, NodeAssignments, NodeView
from weft_placement import BINPACK, BUILTIN_POLICIES, Policy, parse_policy
from weft_placement.demand import Demand, demand_of
from weft_placement.device_memory import DeviceMemory
from weft_placement.filters.apart import apart as refuse_beside
from weft_placement.fit.option import Option, option_of
from weft_placement.scorers import score, weighted
from weft_placement.scorers.apart import apart
from weft_placement.scorers.binpack import binpack
from weft_placement.scorers.fewer_devices import fewer_devices
from weft_placement.scorers.files_there import files_there
from weft_placement.scorers.idle import idle
from weft_placement.scorers.snug import snug
from weft_placement.scorers.spread import spread
from weft_testing.fleet_log import FleetLog

WEIGHTS = Weights(format="gguf", weight_bytes=1, kv_bytes_per_token=1)
MINE, OTHER = ModelId("m-mine"), ModelId("m-other")
SIMULATED = ModelSpec(source=SimulatedSource(), engine="simulated")
NOTHING = NodeAssignments()


def demand(spec: ModelSpec = SIMULATED, revision: int = 2) -> Demand:
    return demand_of(MINE, revision, spec, Policy(), BUILTIN)


def running(*replicas: tuple[ModelId, int], retiring: bool = False) -> NodeAssignments:
    """A node that runs one replica of each model and revision named."""
    found = NOTHING
    for number, (model, revision) in enumerate(replicas):
        claims = (DeviceClaim(index=0, bytes=1),)
        id, cause = ReplicaId(f"{model}-{number}"), Cause(CorrelationId("c"))
        one = Assignment(id, model, revision, "d", 1, 0, claims, 1, cause, retiring=retiring)
        found = found.put(one)
    return found


def option(devices: int = 1, part: float = 0.25) -> Option:
    claims = tuple(DeviceClaim(index=index, bytes=1) for index in range(devices))
    return Option(claims, part, filled=part, of_whole=part / 2)


def a_node(*facts: FileFound | FileMissing) -> NodeView:
    log = FleetLog()
    id = log.node("a", 1 << 30, builtins=("tiny",))
    for fact in facts:
        log.add(machine(id), fact)
    return log.fleet.nodes[id]


NODE = a_node()


@pytest.mark.parametrize(("replicas", "expected"), [(0, 1.0), (1, 1 / 2), (2, 1 / 3)])
def test_a_node_without_a_replica_is_idle_and_each_replica_of_any_model_makes_it_less_so(
    replicas: int, expected: float
) -> None:
    held = running(*[(OTHER, 1), (MINE, 2)][:replicas])
    assert expected == idle(NODE, held, demand(), option())


@pytest.mark.parametrize(("devices", "expected"), [(1, 1.0), (2, 1 / 2), (3, 1 / 3)])
def test_one_device_is_best_and_of_more_each_takes_its_share(devices: int, expected: float) -> None:
    assert expected == fewer_devices(NODE, NOTHING, demand(), option(devices))


FOUND = FileFound(inspection=InspectionId("i"), source="path:/m", size=1, weights=WEIGHTS)
MISSING = FileMissing(inspection=InspectionId("i"), source="path:/m", reason="no such file")
AT_PATH = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", weights=WEIGHTS)
SHIPPED = ModelSpec(source=BuiltinSource(name="tiny"), engine="llama.cpp", weights=WEIGHTS)
NOT_SHIPPED = ModelSpec(source=BuiltinSource(name="other"), engine="llama.cpp", weights=WEIGHTS)


@pytest.mark.parametrize(
    ("node", "spec", "expected"),
    [
        (a_node(FOUND), AT_PATH, 1.0),
        (a_node(MISSING), AT_PATH, 0.0),
        (NODE, AT_PATH, 0.0),
        (NODE, SHIPPED, 1.0),
        (NODE, NOT_SHIPPED, 0.0),
        (NODE, SIMULATED, 1.0),
    ],
)
def test_a_node_has_the_files_where_it_found_or_ships_them_or_there_are_none(
    node: NodeView, spec: ModelSpec, expected: float
) -> None:
    assert expected == files_there(node, NOTHING, demand(spec), option())


@pytest.mark.parametrize("part", [0.0, 0.25, 1.0])
def test_to_pack_is_to_take_much_of_what_is_free_and_to_spread_is_to_leave_much(part: float) -> None:
    assert part == binpack(NODE, NOTHING, demand(), option(part=part))
    assert 1 - part == spread(NODE, NOTHING, demand(), option(part=part))


def test_each_replica_of_the_same_model_takes_its_share_of_what_stays_free_and_other_models_none() -> None:
    said = [
        spread(NODE, held, demand(), option(part=0.25))
        for held in (running((OTHER, 1)), running((MINE, 1)), running((MINE, 1), (MINE, 2)))
    ]
    assert [0.75, 0.75 / 2, 0.75 / 3] == said


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ((), 1.0),
        (((OTHER, 2),), 1.0),
        (((MINE, 2),), 0.5),
        (((MINE, 2), (MINE, 2)), 0.333333),
        (((MINE, 2), (OTHER, 2)), 0.5),
        (((MINE, 1),), 0.666667),
        (((MINE, 1), (MINE, 1)), 0.6),
        (((MINE, 2), (MINE, 1)), 0.4),
    ],
)
def test_apart_is_less_by_each_replica_of_the_revision_and_by_less_than_one_for_any_number_of_anothers(
    there: tuple[tuple[ModelId, int], ...], expected: float
) -> None:
    assert expected == apart(running(*there), demand(revision=2))


def test_any_number_of_another_revisions_weighs_less_than_one_more_of_its_own() -> None:
    assert apart(running(*[(MINE, 1)] * 50), demand(revision=2)) > apart(running((MINE, 2)), demand(revision=2))


def test_who_retires_keeps_nobody_away() -> None:
    leaving = running((MINE, 1), (MINE, 2), retiring=True)
    spreading = SIMULATED.model_copy(update={"strategy": "spread"})
    assert 1.0 == apart(leaving, demand())
    assert refuse_beside(NODE, leaving, demand(spreading)) is None


@pytest.mark.parametrize(
    ("strategy", "there", "refused"),
    [
        ("spread", ((MINE, 2),), True),
        ("spread", ((MINE, 1), (MINE, 2)), True),
        ("spread", ((MINE, 1),), False),
        ("spread", ((OTHER, 2),), False),
        ("spread", ((OTHER, 2), (MINE, 1)), False),
        ("spread", (), False),
        ("binpack", ((MINE, 2),), False),
    ],
)
def test_a_spread_revision_has_one_replica_on_a_node_and_nothing_else_is_in_its_way(
    strategy: str, there: tuple[tuple[ModelId, int], ...], refused: bool
) -> None:
    spec = SIMULATED.model_copy(update={"strategy": strategy})
    said = refuse_beside(NODE, running(*there), demand(spec, revision=2))
    assert ("runs a replica of it already, and the strategy is spread" if refused else None) == said


@pytest.mark.parametrize("name", BUILTIN_POLICIES)
def test_the_weights_add_up_to_one_and_a_weight_of_nothing_leaves_its_scorer_out(name: str) -> None:
    policy = BUILTIN_POLICIES[name]
    whole = {name: weight for name, _, weight in weighted(policy, "binpack")}
    assert 1.0 == pytest.approx(sum(whole.values()))
    assert whole["files"] == 2 * whole["devices"]
    left = [name for name, _, _ in weighted(replace(policy, files=0.0), "binpack")]
    assert left == [name for name in whole if name != "files"]


@pytest.mark.parametrize(
    ("name", "scorers"),
    [
        ("balanced", {"idle", "snug", "files", "devices"}),
        ("binpack", {"binpack", "files", "devices"}),
        ("spread", {"idle", "spread", "files", "devices"}),
    ],
)
def test_each_policy_that_weft_comes_with_has_its_scorers_whatever_a_models_strategy(
    name: str, scorers: set[str]
) -> None:
    for strategy in ("binpack", "spread"):
        assert scorers == {each for each, _, _ in weighted(BUILTIN_POLICIES[name], strategy)}


def test_a_policy_from_before_they_had_names_goes_by_the_models_strategy() -> None:
    old = parse_policy("apart=nodes idle=0.5 pack=1.0 files=0.5 devices=0.25 slots=64")
    assert {"binpack", "files", "devices"} == {name for name, _, _ in weighted(old, "binpack")}
    assert {"idle", "spread", "files", "devices"} == {name for name, _, _ in weighted(old, "spread")}
    assert (True, False) == (old.fills("binpack"), old.fills("spread"))


def test_what_is_snug_takes_most_of_a_whole_device() -> None:
    assert 0.2 == snug(NODE, NOTHING, demand(), option(part=0.4))


def test_a_score_is_the_weighted_sum_and_a_receipt_has_six_digits_of_each() -> None:
    policy = replace(BINPACK, files=0.0, devices=0.5)
    total, scores = score(weighted(policy, "binpack"), NODE, NOTHING, demand(), option(3, part=2 / 3))
    assert {"binpack": 0.666667, "devices": 0.333333} == scores
    assert 0.555556 == total


def device(index: int, total: int, free: int, vendor: Vendor = "nvidia") -> DeviceMemory:
    return DeviceMemory(index, vendor, total, free)


def test_memory_of_accelerators_weighs_twice_that_of_the_machine() -> None:
    # given a quarter of what is free of a device, and half of what is free of the machine's memory
    found = option_of([(device(1, 100, 40), 10)], DeviceClaim(index=0, bytes=20), 40)
    # then it is a third of the one and two of the other
    assert (0.5 + 2 * 0.25) / 3 == pytest.approx(found.filled)


def test_a_processor_is_filled_by_its_part_alone_and_of_several_devices_the_fullest_counts() -> None:
    assert 0.25 == option_of([(device(0, 100, 40, "cpu"), 10)]).filled
    several = option_of([(device(1, 100, 40), 10), (device(2, 50, 20), 10)])
    assert 2 * 0.5 / 3 == pytest.approx(several.filled)
    assert 0.2 == several.of_whole
