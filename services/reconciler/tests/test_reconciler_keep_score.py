"""What goes first where fewer should serve, by its parts: status, what lies on accelerators, the place."""

from dataclasses import replace

import pytest
from weft_contracts import subjects
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.values import Backend, Device, DeviceClaim, Hardware, Member
from weft_reconciler.domain.keep_score import keep_score
from weft_reconciler.domain.replica_status import Assessment, ReplicaStatus
from weft_reconciler.domain.replica_survey import SurveyedReplica

from .story import Story, simulated


@pytest.fixture(name="story")
def one_with_an_accelerator() -> Story:
    """Model m's replica is ready on a, which has a processor, device 0, and an accelerator, device 1."""
    story = Story()
    story.node("a", "b")
    devices = (
        Device(index=0, vendor="cpu", name="processor", memory=1 << 30),
        Device(index=1, vendor="nvidia", name="gpu", memory=1 << 30),
    )
    hardware = Hardware(cpus=2, memory=1 << 30, devices=devices)
    backend = Backend(engine="simulated", version="1", vendors=("cpu", "nvidia"))
    story.log.given(
        subjects.machine(story.id("a")),
        Reported(hardware=hardware, backends=(backend,), builtins=(), agent_version="1"),
    )
    story.deploy("m", simulated(1))
    story.settle()
    story.ready(1, "a")
    return story


def score(story: Story, status: ReplicaStatus, on: dict[int, int], place: float) -> float:
    devices = tuple(DeviceClaim(index=index, bytes=claimed) for index, claimed in on.items())
    member = Member(node=story.id("a"), rank=0, devices=devices)
    view = replace(story.replica(1), members=(member,), score=place)
    return keep_score(story.state.fleet, SurveyedReplica(view, Assessment(status), story.model().newest))


@pytest.mark.parametrize(
    ("status", "on", "place", "expected"),
    [
        (ReplicaStatus.SERVING, {1: 100}, 0.5, 110.5),
        (ReplicaStatus.SERVING, {0: 100}, 0.5, 100.5),
        (ReplicaStatus.SERVING, {0: 75, 1: 25}, 0.0, 102.5),
        (ReplicaStatus.STARTING, {1: 100}, 1.0, 61.0),
        (ReplicaStatus.STARTING, {}, 0.25, 50.25),
        (ReplicaStatus.UNKNOWN, {1: 100}, 0.75, 10.75),
        (ReplicaStatus.OUTGOING, {0: 1}, 0.75, 0.75),
    ],
)
def test_a_score_is_100_times_the_status_and_10_times_what_is_offloaded_and_its_place(
    story: Story, status: ReplicaStatus, on: dict[int, int], place: float, expected: float
) -> None:
    assert expected == score(story, status, on, place)


def test_a_spec_that_changes_while_a_worker_is_away_is_what_there_is_when_it_returns(story: Story) -> None:
    # given a node that went away with what served
    story.lose("a")
    story.pass_time(60)
    # when the spec changes
    story.deploy("m", simulated(1, concurrency=3))
    story.settle()
    assert [1] == [view.revision for view in story.wanted() if view.gone], "it stays until another serves"
    story.ready(story.wanted()[-1].number, "b")
    story.settle()
    # and the node returns
    story.find("a")
    story.settle()
    # then what is there is of the new one, and the old replica is retired
    assert [(2, "ready")] == [(view.revision, view.state) for view in story.wanted()]
    assert not story.replica(1).wanted
