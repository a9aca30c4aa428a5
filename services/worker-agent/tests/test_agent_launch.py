"""What of a worker's settings goes into the launch of an engine host."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from weft_contracts.commit import Cause
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import Member
from weft_contracts.ids import CorrelationId, Incarnation, NodeId, ReplicaId
from weft_engine.launch import Launch
from weft_worker_agent.domain.numa import Bound, NumaNode
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.outbound.processes import launch
from weft_worker_agent.outbound.processes.launch import LaunchIdentity
from weft_worker_agent.settings import WorkerSettings


def written(folder: Path, fact: Assigned, **settings: Any) -> dict[str, Any]:
    """The launch, which a host reads as it is."""
    assignment = Assignment(fact, Cause(CorrelationId("c-1")))
    node, one = NodeId("n-1"), Incarnation("i-1")
    file = launch.write_launch_file(folder, assignment, (), node, one, None, "127.0.0.1", **settings)
    body = json.loads(file.read_text())
    Launch.model_validate(body)
    return body


def test_threads_and_canaries_are_told_where_they_are_set(tmp_path: Path, assigned: Callable[..., Assigned]) -> None:
    told = written(tmp_path, assigned(), canary_after_s=5.0, threads=4)
    assert (5.0, 4) == (told["canary_after_s"], told["threads"])


def test_what_an_older_host_does_not_know_is_not_told_unless_it_is_set(
    tmp_path: Path, assigned: Callable[..., Assigned]
) -> None:
    told = written(tmp_path, assigned())
    assert 1 == told["threads"]
    assert "canary_after_s" not in told
    assert launch.CANARY_AFTER_S == Launch.model_fields["canary_after_s"].default


def test_one_of_several_ranks_is_told_which_and_of_how_many(tmp_path: Path, assigned: Callable[..., Assigned]) -> None:
    members = tuple(Member(node=NodeId(id), rank=rank, devices=()) for rank, id in enumerate(("n-0", "n-1", "n-2")))
    told = written(tmp_path, assigned().model_copy(update={"members": members}))
    assert (1, 3) == (told["rank"], told["ranks"])
    # an older host knows of no ranks
    assert not {"rank", "ranks"} & written(tmp_path, assigned(at=NodeId("n-1"))).keys()


def test_a_numa_node_is_told_where_one_was_chosen(tmp_path: Path, assigned: Callable[..., Assigned]) -> None:
    node = NumaNode(1, frozenset({8, 9, 10, 12}), 1 << 30)
    assert {"node": 1, "processors": "8-10,12"} == written(tmp_path, assigned(), numa=node)["numa"]
    assert "numa" not in written(tmp_path, assigned())


def test_what_a_host_was_started_for_is_read_back_by_the_next_agent_also_from_one_before_numa() -> None:
    bound = LaunchIdentity(ReplicaId("m-1"), 2, Incarnation("i-1"), "s", "e", "b", Bound(1, 5))
    body = json.loads(json.dumps(bound.body()))
    assert bound == LaunchIdentity.of(body)
    for older in ({}, {"bound": None}, {"bound": "1"}, {"bound": [1]}, {"bound": [1, None]}):
        without = {name: value for name, value in body.items() if name != "bound"} | older
        assert replace(bound, bound=None) == LaunchIdentity.of(without)


@pytest.mark.parametrize(
    ("said", "processors", "expected"), [("1", 64, 1), ("12", 2, 12), ("share", 8.0, 8), ("share", 0.5, 1)]
)
def test_threads_are_a_number_or_the_shares_processors(said: str, processors: float, expected: int) -> None:
    assert expected == WorkerSettings(engine_threads=said).threads(processors)


@pytest.mark.parametrize("said", ["0", "all", "-1", "1000"])
def test_other_threads_are_refused(said: str) -> None:
    with pytest.raises(ValidationError):
        WorkerSettings(engine_threads=said)


def test_a_stalls_longest_is_never_shorter_than_its_bound() -> None:
    bounds = WorkerSettings(stall_timeout=100, stall_longest=10).stall_bounds
    assert (100, 100) == (bounds.still_s, bounds.longest_s)
