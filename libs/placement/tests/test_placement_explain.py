"""Receipts and explanations."""

import pytest
from weft_contracts.commit import Commit, Decision
from weft_contracts.facts.node import Assigned, Cordoned, Expired
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.subjects import node, replica
from weft_placement import (
    BadPolicy,
    CandidateRanking,
    Circumstances,
    NoPlace,
    NotInTheLog,
    Placement,
    PlannedFleet,
    Policy,
    choose,
    decide_placement,
    explain,
    explain_decision,
    parse_policy,
)
from weft_placement.decide import demand_for
from weft_placement.explain import policy_of
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
    assert {"apart", "idle", "snug", "files", "devices"} == set(first.scores or {})
    assert ("w0", "is cordoned", False) == (last.name, last.refusal, last.chosen)


def test_a_decision_is_computed_again_from_the_log_with_the_policy_of_its_receipt():
    log = a_log()
    receipt = place(log, Policy(snug=3, files=0.25)).receipt
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


def test_before_a_decision_an_explanation_says_how_many_nodes_could_take_it():
    log = a_log()
    found = explain(log.fleet, ONE)
    assert "not decided yet; 9 of 10 nodes could take it" == found.outcome
    assert (None, log.fleet.position, "toy") == (found.receipt, found.position, found.model_name)
    assert not any(answer.chosen for answer in found.answers)
    # the log from its beginning says the same
    assert found == explain_decision(log.commits, ONE)


def test_candidates_come_first_then_refusals_the_nearest_first_and_avoided_nodes_among_them_by_their_own_reason():
    log = FleetLog()
    for name, size in (("c", 8), ("b", 4), ("a", 2)):
        log.node(name, size * GIB)
    log.node("d", 8 * GIB, kind="agent")
    id = log.model("toy", SPEC.model_copy(update={"engine_args": {"memory_bytes": 3 * GIB}}))
    log.scale(id, 1, avoid=("n-c", "n-d"))
    found = explain(log.fleet, ONE)
    avoided = "is avoided: an earlier replica failed, was unloaded or runs there"
    assert [
        ("b", None),
        ("a", "has no device with 3.00 GiB free"),
        ("c", avoided),
        ("d", avoided),
    ] == [(answer.name, answer.refusal) for answer in found.answers]
    assert "not decided yet; 1 of 4 nodes could take it" == found.outcome


def test_a_decision_that_found_no_place_is_explained_by_its_reason():
    log = FleetLog()
    log.node("a", GIB // 2)
    log.model("toy", SPEC, replicas=1)
    outcome = decide_placement(log.fleet, ONE, Policy(), now=5.0, seed=9)
    assert isinstance(outcome, NoPlace)
    fact = Unplaceable(model=ModelId("m-toy"), revision=1, reason=outcome.reason, receipt=outcome.receipt)
    log.add(replica(ONE), fact)
    log.node("b", 8 * GIB)
    found = explain_decision(log.commits, ONE)
    assert (outcome.reason, outcome.receipt) == (found.outcome, found.receipt)
    assert ["a"] == [answer.name for answer in found.answers]
    # now it would have one
    assert ["b", "a"] == [answer.name for answer in explain(log.fleet, ONE).answers]


def test_a_memory_that_is_not_known_is_the_outcome():
    log = FleetLog()
    log.node("a", GIB)
    unknown = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp")
    log.model("toy", unknown, replicas=1)
    found = explain(log.fleet, ONE)
    assert "no node's inspection has read the file's header" in found.outcome
    assert () == found.answers


def test_a_node_that_was_removed_is_named_by_its_id_where_the_log_forgot_it():
    log = a_log()
    outcome = place(log, Policy())
    log.add(node(outcome.members[0].node), Expired(waited_s=1))
    assert "placed on n-w1" == explain(log.fleet, ONE).outcome
    assert 9 == len(explain(log.fleet, ONE).answers)


def test_replicas_of_one_round_are_explained_with_those_before_them_counted():
    # given two replicas that one round placed, the second beside what the first took
    log = FleetLog()
    log.node("a", 3 * GIB)
    log.node("b", 2 * GIB)
    log.model("toy", SPEC.model_copy(update={"engine_args": {"memory_bytes": 2 * GIB}}), replicas=2)
    planned = PlannedFleet(log.fleet)
    ranking = CandidateRanking(demand_for(log.fleet, log.fleet.replicas[ONE], Policy()), Policy())
    found: list[Placement] = []
    for view in tuple(log.fleet.replicas.values()):
        ranking.sync(planned)
        outcome = choose(log.fleet, view, ranking, Circumstances(5.0, 9))
        assert isinstance(outcome, Placement)
        planned.plan(view, outcome.members, view.cause)
        found.append(outcome)
    for outcome in found:
        placed = Placed(model=ModelId("m-toy"), revision=1, epoch=1, members=outcome.members, receipt=outcome.receipt)
        log.add(replica(outcome.replica), placed)
    assert ["n-b", "n-a"] == [outcome.members[0].node for outcome in found]
    # then
    first, second = (explain_decision(log.commits, outcome.replica).answers for outcome in found)
    assert [("b", None), ("a", None)] == [(answer.name, answer.refusal) for answer in first]
    assert [("a", None), ("b", "has no device with 2.00 GiB free")] == [
        (answer.name, answer.refusal) for answer in second
    ]


def test_a_policy_that_a_receipt_does_not_name_is_the_default():
    log = a_log()
    receipt = place(log, Policy(snug=3.0)).receipt
    assert Policy(snug=3.0) == policy_of(receipt)
    assert policy_of(None) is policy_of(receipt.model_copy(update={"policy": "none of ours"})) is None


def test_a_policy_that_is_given_goes_over_the_receipts():
    log = a_log()
    place(log, Policy(snug=3.0))
    assert Policy(snug=3.0).text == explain(log.fleet, ONE).policy
    assert Policy(snug=5.0).text == explain(log.fleet, ONE, Policy(snug=5.0)).policy
