"""The fold of a node's own part of the log."""

from collections.abc import Callable
from functools import reduce

from weft_contracts import subjects
from weft_contracts.commit import Cause, Recorded
from weft_contracts.facts import inspection, machine, run
from weft_contracts.facts import node as node_facts
from weft_contracts.facts.values import Device, Hardware
from weft_contracts.ids import CorrelationId, EventId, Incarnation, InspectionId, NodeId, ReplicaId
from weft_testing import HandLog
from weft_worker_agent.domain.own_part import OwnPart, Retirement, evolve

REPLICA = ReplicaId("m-x-1")
ONE = Incarnation("i-1")


def folded(log: HandLog) -> OwnPart:
    return reduce(evolve, log.commits, OwnPart())


def test_an_assignment_is_remembered_with_the_cause_of_what_follows(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    given = hand_log.given(subjects.node(node), assigned())

    assignment = folded(hand_log).assignments[REPLICA]

    assert (given.cause, None) == (assignment.cause, assignment.retirement)
    assert Cause(given.correlation_id, given.event_id) == assignment.cause


def test_a_retirement_is_part_of_its_assignment(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    hand_log.given(subjects.node(node), assigned())
    given = hand_log.given(subjects.node(node), node_facts.Unassigned(replica=REPLICA, deadline_s=7, why="scaled down"))

    assert Retirement(7, given.cause, 2) == folded(hand_log).assignments[REPLICA].retirement


def test_a_run_that_stopped_after_its_retirement_is_forgotten(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    hand_log.given(subjects.node(node), assigned())
    hand_log.given(subjects.run(node, REPLICA), run.Loading(epoch=1, incarnation=ONE))
    hand_log.given(subjects.node(node), node_facts.Unassigned(replica=REPLICA, deadline_s=7, why="-"))
    hand_log.given(subjects.run(node, REPLICA), run.Stopped(epoch=1, why="retired"))

    part = folded(hand_log)

    assert ({}, {}) == (part.assignments, part.runs)


def test_a_run_that_stopped_before_its_retirement_is_still_to_be_closed(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    hand_log.given(subjects.node(node), assigned())
    hand_log.given(subjects.run(node, REPLICA), run.Stopped(epoch=1, why="shutdown"))
    hand_log.given(subjects.node(node), node_facts.Unassigned(replica=REPLICA, deadline_s=7, why="-"))

    assert [REPLICA] == list(folded(hand_log).assignments)


def test_whose_drain_stands_is_remembered_until_it_is_lifted(hand_log: HandLog, node: NodeId) -> None:
    seen: list[tuple[str | None, bool]] = []
    for fact in (
        node_facts.Draining(why="worker", deadline_s=1),
        node_facts.Drained(),
        node_facts.Draining(why="admin", deadline_s=1),
        node_facts.Drained(),
        node_facts.Resumed(),
    ):
        hand_log.given(subjects.node(node), fact)
        seen.append((folded(hand_log).drain, folded(hand_log).drained))

    assert [("worker", False), ("worker", True), ("admin", False), ("admin", True), (None, False)] == seen


def test_a_new_epoch_replaces_the_assignment(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    hand_log.given(subjects.node(node), assigned(epoch=1))
    hand_log.given(subjects.node(node), node_facts.Unassigned(replica=REPLICA, deadline_s=7, why="-"))
    hand_log.given(subjects.node(node), assigned(epoch=2))

    assignment = folded(hand_log).assignments[REPLICA]

    assert (2, None) == (assignment.epoch, assignment.retirement)


def test_an_inspection_is_open_until_it_is_answered(hand_log: HandLog, node: NodeId) -> None:
    id = InspectionId("i-abc")
    hand_log.given(subjects.inspection(node, id), inspection.Requested(source="path:/x", engine="llama.cpp"))
    assert ["path:/x"] == [question.source for question in folded(hand_log).questions.values()]

    hand_log.given(subjects.machine(node), machine.FileMissing(inspection=id, source="path:/x", reason="no such file"))
    assert {} == folded(hand_log).questions


def test_one_event_may_carry_several_facts(node: NodeId, assigned: Callable[..., node_facts.Assigned]) -> None:
    facts = (assigned("m-x-1"), assigned("m-x-2"))
    commit = Recorded(9, subjects.node(node), facts, EventId("e"), CorrelationId("c"), None, "scheduler", 0.0)

    assert ["m-x-1", "m-x-2"] == list(evolve(OwnPart(), commit).assignments)


def test_a_run_that_ended_names_the_incarnation_that_ran_in_its_epoch_and_no_other(
    hand_log: HandLog, node: NodeId, assigned: Callable[..., node_facts.Assigned]
) -> None:
    seen: list[Incarnation | None] = []
    for fact in (
        run.Stopped(epoch=1, why="exited"),  # before it ever ran
        run.Loading(epoch=1, incarnation=ONE),
        run.Stopped(epoch=1, why="exited"),
        run.Failed(epoch=2, reason="-", permanent=True, starts=0),
    ):
        hand_log.given(subjects.node(node), assigned(epoch=fact.epoch))
        hand_log.given(subjects.run(node, REPLICA), fact)
        seen.append(folded(hand_log).runs[REPLICA].incarnation)

    assert [None, ONE, ONE, None] == seen


def test_what_others_use_is_remembered_of_devices_that_are_there(hand_log: HandLog, node: NodeId) -> None:
    def reported(*indexes: int) -> machine.Reported:
        devices = tuple(Device(index=index, vendor="nvidia", name="-", memory=10) for index in indexes)
        hardware = Hardware(cpus=1, memory=10, devices=devices)
        return machine.Reported(hardware=hardware, backends=(), builtins=(), agent_version="1")

    for fact in (
        reported(1, 2),
        machine.PressureChanged(device=1, bytes=3),
        machine.PressureChanged(device=2, bytes=4),
        reported(2),
    ):
        hand_log.given(subjects.machine(node), fact)

    assert {2: 4} == folded(hand_log).pressure
