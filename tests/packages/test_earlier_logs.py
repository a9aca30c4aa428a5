"""A log that an earlier release wrote is read and folded by this one: every fact as it was said, and all services."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from weft_contracts import codec
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Unknown, Unreadable
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import Aggregate, Kind
from weft_fleet import Fleet
from weft_testing.histories import written

from .test_snapshot_versions import MEMORIES

LOGS = sorted((Path(__file__).parent / "logs").glob("*.jsonl"))
"""One a release: a line is a commit's kind, key and facts as that release wrote them. First a mesh of two nodes and two
models at work, then each fact of its catalogue, in each of its versions, with drawn values."""
AT_WORK = 12
"""Commits until the mesh is at work."""


def lines(log: Path) -> list[tuple[Kind, str, list[dict[str, Any]]]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def recorded(log: Path) -> list[Recorded]:
    return [
        Recorded(
            sequence=sequence,
            aggregate=Aggregate(kind, key),
            facts=codec.decode_facts(kind, json.dumps(facts).encode()),
            event_id=EventId(f"e{sequence}"),
            correlation_id=CorrelationId(f"c{sequence}"),
            causation_id=None,
            actor="test",
            at=1_700_000_000.0 + sequence,
        )
        for sequence, (kind, key, facts) in enumerate(lines(log), 1)
    ]


def holds(said: object, now: object) -> bool:
    """Whether all that was said then is said now, and nothing else but fields that there were not."""
    if isinstance(said, Mapping) and isinstance(now, Mapping):
        mine, theirs = cast("Mapping[str, object]", said), cast("Mapping[str, object]", now)
        return all(name in theirs and holds(each, theirs[name]) for name, each in mine.items())
    if isinstance(said, list) and isinstance(now, list):
        first, second = cast("list[object]", said), cast("list[object]", now)
        return len(first) == len(second) and all(map(holds, first, second))
    return said == now


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_every_fact_of_an_earlier_release_is_read_as_it_was_said(log: Path) -> None:
    assert LOGS
    for commit, (_, _, said) in zip(recorded(log), lines(log), strict=True):
        assert not [fact for fact in commit.facts if isinstance(fact, Unknown | Unreadable)]
        now = [fact.model_dump(mode="json") for fact in commit.facts]
        assert holds(said, now), (said, now)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_mesh_at_work_is_the_same_mesh_to_this_release(log: Path) -> None:
    fleet = Fleet()
    for commit in recorded(log)[:AT_WORK]:
        fleet.apply(commit)
    assert {"n-a": "healthy", "n-b": "healthy"} == {id: node.presence for id, node in fleet.nodes.items()}
    assert {"m-x": 1, "m-y": 1} == {id: model.revision for id, model in fleet.models.items()}
    assert ["placed", "added"] * 2 == [replica.state for replica in fleet.replicas.values()]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
@pytest.mark.parametrize("service", MEMORIES)
def test_every_service_folds_it_to_its_end(log: Path, service: str) -> None:
    module, _, name = MEMORIES[service].partition(":")
    memory = getattr(importlib.import_module(module), name)()
    commits = recorded(log)
    if hasattr(memory, "fold"):
        memory.fold(commits)
    else:
        for commit in commits:
            memory.apply(commit)
    # and what it remembers can be kept in a snapshot
    assert any(written(memory))
