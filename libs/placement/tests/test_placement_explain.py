"""Receipts and explanations."""

import pytest
from weft_contracts.commit import Commit, Decision
from weft_contracts.facts.node import Assigned, Cordoned
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.values import ModelSpec, SimulatedSource
from weft_contracts.ids import NodeId, ReplicaId
from weft_contracts.subjects import node, replica
from weft_placement import (
    BadPolicy,
    NotInTheLog,
    Placement,
    Policy,
    decide_placement,
    explain,
    explain_decision,
    parse_policy,
)
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": GIB})
ONE = ReplicaId("m-toy-1")


def a_log() -> FleetLog:
    log = FleetLog()
    for index in range(10):
        log.node(f"w{index}", (4 + index) * GIB)
    log.add(node(NodeId("n-w0")), Cordoned())
    log.model("toy", SPEC, replicas=1)
    return log


def place(log: FleetLog, policy: Policy) -> Placement:
    outcome = decide_placement(log.fleet, ONE, policy, now=5.0, seed=9)
    assert isinstance(outcome, Placement)
    view = log.fleet.replicas[ONE]
    assigned = Assigned(
        replica=ONE,
        model=view.model,
        model_name="toy",
        revision=1,
        digest=view.digest,
        epoch=1,
        members=outcome.members,
        spec=SPEC,
    )
    placed = Placed(model=view.model, revision=1, epoch=1, members=outcome.members, receipt=outcome.receipt)
    commits = (
        Commit(replica(ONE), (placed,), None, view.cause),
        Commit(node(outcome.members[0].node), (assigned,), None, view.cause),
    )
    log.take([Decision(commits)])
    return outcome


def test_a_receipt_names_what_the_decision_rests_on():
    log = a_log()
    position = log.fleet.position
    receipt = place(log, Policy()).receipt
    assert position == receipt.position
    assert (9, 5.0) == (receipt.seed, receipt.decided_at)
    assert log.commits[position - 1].event_id == receipt.trigger
    assert {"is cordoned": 1} == receipt.refusals
    assert 8 == len(receipt.candidates)
    assert ["n-w1", "n-w2"] == [candidate.node for candidate in receipt.candidates[:2]]
    assert Policy() == parse_policy(receipt.policy)


def test_an_explanation_names_every_node_with_its_refusal_or_its_scores():
    log = a_log()
    place(log, Policy())
    explanation = explain_decision(log.commits, ONE)
    assert "placed on w1" == explanation.outcome
    assert 10 == len(explanation.answers)
    first, last = explanation.answers[0], explanation.answers[-1]
    assert ("w1", True, None, "one device") == (first.name, first.chosen, first.refusal, first.rung)
    assert {"apart", "binpack", "files", "devices"} == set(first.scores or {})
    assert ("w0", "is cordoned", False) == (last.name, last.refusal, last.chosen)


def test_a_decision_is_computed_again_from_the_log_with_the_policy_of_its_receipt():
    log = a_log()
    receipt = place(log, Policy(pack=3, files=0.25)).receipt
    log.add(node(NodeId("n-w1")), Cordoned())
    again = explain_decision(log.commits, ONE)
    candidates = [answer for answer in again.answers if answer.refusal is None]
    assert [c.score for c in receipt.candidates] == [answer.score for answer in candidates[:8]]
    assert [dict(c.scores) for c in receipt.candidates] == [answer.scores for answer in candidates[:8]]


def test_an_explanation_now_leaves_the_replicas_own_claim_out():
    log = a_log()
    place(log, Policy())
    before = explain_decision(log.commits, ONE).answers[0]
    assert before == explain(log.fleet, ONE).answers[0]


def test_a_replica_that_the_log_does_not_know_is_named():
    with pytest.raises(NotInTheLog, match="m-none-1"):
        explain(FleetLog().fleet, ReplicaId("m-none-1"))


@pytest.mark.parametrize(
    "text",
    ["", "idle=1", "idle=x pack=1 files=1 devices=1 slots=1", "idle=0 pack=0 files=0 devices=0 slots=1"],
)
def test_a_text_that_makes_no_policy_is_refused(text: str):
    with pytest.raises(BadPolicy):
        parse_policy(text)
