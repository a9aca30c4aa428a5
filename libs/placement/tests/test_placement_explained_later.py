"""What can be said of a decision whose place in the log is far away, and of one node alone."""

import pytest
from weft_contracts.facts.node import Cordoned
from weft_contracts.facts.values import DeviceClaim
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import node
from weft_placement import Policy
from weft_placement.claim import ClaimUnknown
from weft_placement.claim_on_node import device_uses, model_answer
from weft_placement.explain import explain_as_of, explain_by_receipt, explain_decision, last_decision
from weft_placement.planned_fleet import PlannedFleet
from weft_testing.fleet_log import refold

from .test_placement_explain import GIB, ONE, SPEC, a_log, place


def test_a_receipt_tells_its_candidates_by_name_and_counts_the_others() -> None:
    # given a decision, and a node that left since
    log = a_log()
    place(log, Policy())
    decided = last_decision(log.commits, ONE)
    assert decided is not None
    log.add(node(NodeId("n-w1")), Cordoned())
    # when
    found = explain_by_receipt(log.fleet, ONE, decided[0])
    # then
    whole = explain_decision(log.commits, ONE)
    assert (False, {"is cordoned": 1}, "placed on w1") == (found.recomputed, found.refusals, found.outcome)
    assert [(a.name, a.devices, a.score, a.scores, a.chosen) for a in whole.answers[:8]] == [
        (a.name, a.devices, a.score, a.scores, a.chosen) for a in found.answers
    ]
    assert (GIB,) == found.answers[0].bytes


def test_a_decision_is_computed_again_on_the_fleet_as_it_was() -> None:
    log = a_log()
    place(log, Policy())
    decided = last_decision(log.commits, ONE)
    assert decided is not None
    fact, sequence = decided
    before = [commit for commit in log.commits if commit.sequence <= fact.receipt.position]
    between = [commit for commit in log.commits if fact.receipt.position < commit.sequence < sequence]
    assert explain_decision(log.commits, ONE) == explain_as_of(refold(before), between, ONE, fact)


def test_a_replica_without_a_decision_has_none() -> None:
    assert last_decision(a_log().commits, ReplicaId("m-toy-1")) is None


def test_a_node_tells_what_replicas_claim_what_others_hold_and_what_is_free_of_each_device() -> None:
    log = a_log()
    place(log, Policy())
    view = log.fleet.nodes[NodeId("n-w1")]
    (used,) = device_uses(view, log.fleet.assigned(view.id))
    assert (0, 5 * GIB, GIB, 4 * GIB) == (used.index, used.memory, used.claimed, used.free + used.others)


def test_a_node_answers_for_one_more_replica_of_a_model_as_placement_would() -> None:
    log = a_log()
    big = log.model("big", SPEC.model_copy(update={"engine_args": {"memory_bytes": 9 * GIB}}))
    odd = log.model("odd", SPEC.model_copy(update={"engine_args": {"memory_bytes": "many"}}))
    planned = PlannedFleet(log.fleet)
    small, large = log.fleet.nodes[NodeId("n-w1")], log.fleet.nodes[NodeId("n-w9")]
    assert "has no device with 9.00 GiB free" == model_answer(planned, small, log.fleet.models[big], Policy()).refusal
    taken = model_answer(planned, large, log.fleet.models[big], Policy())
    assert (None, "one device", True) == (taken.refusal, taken.rung, taken.score > 0)
    with pytest.raises(ClaimUnknown):
        model_answer(planned, large, log.fleet.models[odd], Policy())


def test_a_claim_of_a_device_is_told_where_the_replica_lies() -> None:
    log = a_log()
    outcome = place(log, Policy())
    assert (DeviceClaim(index=0, bytes=GIB),) == outcome.members[0].devices
