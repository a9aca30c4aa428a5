"""What a decision leaves behind: its reasons counted, its policy as text, and a sentence where there is no place."""

from typing import Any

import pytest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FileMissing, Reported
from weft_contracts.facts.node import Approved, CutOff, Healthy, Joined, Labelled, Removed
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import Addresses, Backend, ModelSpec, Weights
from weft_contracts.ids import InspectionId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.subjects import machine, node
from weft_placement import BadPolicy, CandidateRanking, NoPlace, Placement, PlannedFleet, Policy, decide_placement
from weft_placement.decide import OTHER_REASONS, REASONS_KEPT, demand_for, few
from weft_placement.policy import parse_policy
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
ONE = ReplicaId("m-toy-1")
TINY = Weights(format="gguf", weight_bytes=GIB, kv_bytes_per_token=1)
AT_PATH = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", weights=TINY)
A = NodeId("n-a")


def simulated(bytes: int = GIB, **more: object) -> ModelSpec:
    given = {"source": SimulatedSource(), "engine": "simulated", "engine_args": {"memory_bytes": bytes}, **more}
    return ModelSpec.model_validate(given)


def decided(log: FleetLog, spec: ModelSpec, *, avoid: tuple[str, ...] = (), policy: Policy | None = None) -> object:
    id = log.model("toy", spec)
    log.scale(id, 1, avoid=avoid)
    last = replica_id(id, log.fleet.models[id].next_number - 1)
    return decide_placement(log.fleet, last, policy or Policy(), now=1.0, seed=0)


def refused(log: FleetLog, spec: ModelSpec, *, avoid: tuple[str, ...] = ()) -> NoPlace:
    outcome = decided(log, spec, avoid=avoid)
    assert isinstance(outcome, NoPlace), outcome
    return outcome


# the sentence


def test_a_mesh_without_a_node_says_that_there_is_none() -> None:
    log = FleetLog()
    assert "no node can take it; there is none" == refused(log, simulated()).reason
    log.add(node(log.node("a", GIB)), Removed(why="sold"))
    assert "no node can take it; there is none" == refused(log, simulated()).reason


def test_the_nearest_is_the_one_that_passed_the_most_filters() -> None:
    log = FleetLog()
    log.node("a", 2 * GIB, kind="agent")
    log.node("b", 2 * GIB)
    log.node("c", 2 * GIB, engines=())
    found = refused(log, simulated(8 * GIB)).reason
    assert "no node can take it; the nearest, b, has no device with 8.00 GiB free (at most 2.00 GiB)" == found


def test_of_nodes_that_lack_memory_the_nearest_has_the_most_and_of_those_the_first() -> None:
    log = FleetLog()
    log.node("c", 4 * GIB)
    log.node("b", 4 * GIB)
    log.node("a", 2 * GIB)
    found = refused(log, simulated(8 * GIB)).reason
    assert "no node can take it; the nearest, b, has no device with 8.00 GiB free (at most 4.00 GiB)" == found


def test_a_reason_that_is_not_memory_has_no_figure() -> None:
    log = FleetLog()
    log.node("a", GIB, engines=())
    assert "no node can take it; the nearest, a, has no simulated backend" == refused(log, simulated()).reason


def test_where_every_node_is_avoided_the_sentence_says_so_of_all() -> None:
    log = FleetLog()
    ids = [log.node("a", 8 * GIB), log.node("b", GIB // 2)]
    outcome = refused(log, simulated(), avoid=tuple(ids))
    reason = "is avoided: an earlier replica failed, was unloaded or runs there"
    assert f"no node can take it; every node {reason}" == outcome.reason
    assert {reason: 2} == outcome.receipt.refusals


def test_a_node_that_is_avoided_is_not_the_nearest() -> None:
    log = FleetLog()
    a = log.node("a", 4 * GIB)
    log.node("b", 2 * GIB)
    assert refused(log, simulated(8 * GIB), avoid=(a,)).reason.startswith("no node can take it; the nearest, b, ")


def test_what_an_avoided_node_would_have_said_is_not_counted() -> None:
    log = FleetLog()
    a = log.node("a", GIB // 2)
    log.node("b", GIB // 2)
    reason = "is avoided: an earlier replica failed, was unloaded or runs there"
    expected = {"has no device with 1.00 GiB free": 1, reason: 1}
    assert expected == refused(log, simulated(), avoid=(a,)).receipt.refusals


# the reasons


def test_the_most_frequent_reasons_come_first_and_equal_ones_by_their_words() -> None:
    log = FleetLog()
    log.node("a", GIB, engines=())
    for name in "bc":
        log.node(name, GIB, kind="agent")
    log.node("d", GIB // 2)
    expected = [
        ("is of the kind agent, which runs no models", 2),
        ("has no device with 1.00 GiB free", 1),
        ("has no simulated backend", 1),
    ]
    assert expected == list(refused(log, simulated()).receipt.refusals.items())


def test_a_receipt_keeps_so_many_reasons_and_counts_the_rest_together() -> None:
    reasons = {f"reason {number}": 2 for number in range(REASONS_KEPT)}
    assert reasons == few(reasons)
    assert {**reasons, OTHER_REASONS: 3} == few({**reasons, "rare": 2, "rarer": 1})


def test_a_placement_says_why_the_rungs_below_it_were_passed_over() -> None:
    log = FleetLog()
    weights = Weights(format="safetensors", weight_bytes=10 * GIB, kv_bytes_per_token=1, heads=8, kv_heads=8)
    spec = ModelSpec(source=SimulatedSource(), engine="vllm", weights=weights)
    log.node("a", 9 * GIB, 9 * GIB)
    outcome = decided(log, spec)
    assert isinstance(outcome, Placement)
    (rung,) = outcome.receipt.rungs
    assert rung.startswith("one device: the best node has no device with 12.80 GiB free")
    log.node("b", 20 * GIB)
    outcome = decided(log, spec)
    assert isinstance(outcome, Placement)
    assert () == outcome.receipt.rungs


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ((), "is not approved"),
        ((Approved(by="admin"),), "was not heard yet"),
        ((Approved(by="admin"), Healthy()), "has not reported its hardware"),
        ((Approved(by="admin"), Healthy(), CutOff(why="it sent too much")), "is cut off: it sent too much"),
    ],
)
def test_a_node_that_joins_says_what_it_still_lacks(facts: tuple[Fact, ...], reason: str) -> None:
    log = FleetLog()
    where = Addresses(host="127.0.0.1", http_port=1)
    log.add(node(A), Joined(name="a", public_key="U", token=TokenId("t"), addresses=where))
    for fact in facts:
        log.add(node(A), fact)
    assert {reason: 1} == refused(log, simulated()).receipt.refusals


def test_a_node_needs_a_device_that_its_backend_can_use() -> None:
    log = FleetLog()
    log.node("a", GIB, vendor="apple")
    hardware = log.fleet.nodes[A].hardware
    assert hardware is not None
    of_another = (Backend(engine="simulated", version="1", vendors=("nvidia",)),)
    log.add(machine(A), Reported(hardware=hardware, backends=of_another, builtins=(), agent_version="1"))
    expected = {"has no device that its simulated backend can use": 1}
    assert expected == refused(log, simulated()).receipt.refusals


def test_every_label_of_a_selector_counts_and_not_the_first_alone() -> None:
    log = FleetLog()
    log.node("a", GIB, labels={"zone": "1", "rack": "2"})
    assert isinstance(decided(log, simulated(selector={"!gpu": "", "zone": "1", "rack": "2"})), Placement)
    found = refused(log, simulated(selector={"zone": "1", "!gpu": "", "rack": "3"}))
    assert {"lacks the label rack=3": 1} == found.receipt.refusals
    log.add(node(A), Labelled(labels={"gpu": "x"}))
    found = refused(log, simulated(selector={"zone": "1", "!gpu": "", "rack": "3"}))
    assert {"bears the label gpu": 1} == found.receipt.refusals


def test_a_file_is_what_a_node_says_of_it_and_a_shipped_model_may_be_said_to_be_missing() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    log.add(machine(A), FileMissing(inspection=InspectionId("i"), source="path:/m", reason="no such file"))
    assert {"cannot load path:/m: no such file": 1} == refused(log, AT_PATH).receipt.refusals


# one who is there already


def test_a_replica_whose_memory_is_not_known_has_no_place_and_no_node_is_blamed() -> None:
    log = FleetLog()
    log.node("a", GIB)
    found = refused(log, AT_PATH.model_copy(update={"weights": Weights(format="none")}))
    assert "no node's inspection has read the file's header" in found.reason
    assert ({}, ()) == (found.receipt.refusals, found.receipt.candidates)


def test_a_ranking_that_is_asked_again_looks_at_what_changed_and_at_nothing_else() -> None:
    log = FleetLog()
    for name in "abc":
        log.node(name, GIB)
    log.model("toy", simulated(), replicas=1)
    replica = log.fleet.replicas[ONE]
    ranking = CandidateRanking(demand_for(log.fleet, replica, Policy()), Policy())
    planned = PlannedFleet(log.fleet)
    ranking.sync(planned)
    assert 3 == ranking.changes
    # when nothing changed
    ranking.sync(planned)
    ranking.sync(PlannedFleet(log.fleet))
    assert 3 == ranking.changes
    # when one node did
    log.add(node(A), Removed(why="sold"))
    ranking.sync(PlannedFleet(log.fleet))
    assert (4, None) == (ranking.changes, ranking.evaluation(A))
    assert ["n-b", "n-c"] == [candidate.node for candidate in ranking.candidates()]


def test_a_ranking_knows_a_fleet_of_which_it_has_seen_a_single_commit() -> None:
    log = FleetLog()
    where = Addresses(host="127.0.0.1", http_port=1)
    log.add(node(A), Joined(name="a", public_key="U", token=TokenId("t"), addresses=where))
    spec = simulated()
    log.model("toy", spec, replicas=1)
    assert {"is not approved": 1} == refused(log, spec).receipt.refusals


# the policy


@pytest.mark.parametrize(
    "weights",
    [
        {"idle": -0.1},
        {"binpack": -0.1},
        {"spread": -0.1},
        {"snug": -0.1},
        {"files": -0.1},
        {"devices": -0.1},
        {"idle": 0, "snug": 0, "files": 0, "devices": 0},
        {"slots": 0},
        {"apart": "never"},
    ],
)
def test_weights_that_rank_nothing_make_no_policy(weights: dict[str, Any]) -> None:
    with pytest.raises(BadPolicy, match="want "):
        Policy(**weights)


@pytest.mark.parametrize("one", ["idle", "binpack", "spread", "snug", "files", "devices"])
def test_one_weight_above_nothing_and_one_slot_are_enough(one: str) -> None:
    weights: dict[str, Any] = {"idle": 0, "snug": 0, "files": 0, "devices": 0, "slots": 1, one: 0.1}
    policy = Policy(**weights)
    assert policy == parse_policy(policy.text)


def test_a_policy_is_told_by_its_text_and_by_16_digits_over_it() -> None:
    assert (
        "name=balanced apart=zones idle=0.5 binpack=0.0 spread=0.0 snug=0.25 files=0.5 devices=0.25 slots=64"
        == Policy().text
    )
    assert 16 == len(Policy().digest)
    assert Policy().digest != Policy(apart="no").digest


def test_a_policy_that_sets_nothing_apart_gives_no_figure_for_it() -> None:
    log = FleetLog()
    log.node("a", 8 * GIB)
    together, apart = (decided(log, simulated(), policy=Policy(apart=apart)) for apart in ("no", "nodes"))
    assert isinstance(together, Placement)
    assert isinstance(apart, Placement)
    assert {"idle", "snug", "files", "devices"} == set(together.receipt.candidates[0].scores)
    assert {"apart", "idle", "snug", "files", "devices"} == set(apart.receipt.candidates[0].scores)
