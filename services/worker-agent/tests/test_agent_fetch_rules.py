"""What is said, waited for and tried again while a model's files are fetched."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.facts import machine, run
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.source import HfSource, HttpsSource, S3Source
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.signals import PROGRESS_AGAIN_S, PROGRESS_BYTES, FetchSaid, NodeProgress
from weft_contracts.source_keys import told_source
from weft_testing import HandLog
from weft_worker_agent.domain.fetch_progress import (
    FetchProgress,
    begun,
    fetch_said,
    finished,
    moved,
    placing,
)
from weft_worker_agent.domain.hosts import End, Host
from weft_worker_agent.domain.node_progress import is_due, told
from weft_worker_agent.domain.own_part import OwnPart, evolve
from weft_worker_agent.domain.reports import missing_reports
from weft_worker_agent.domain.restarts import Tries
from weft_worker_agent.domain.steering import Start, steer

REPLICA = ReplicaId("m-x-1")
LIVING = Host(REPLICA, 1, Incarnation("i-1"), started_at=0.0)
BEING_FETCHED = replace(LIVING, fetching=700)
NOT_FETCHED = replace(LIVING, end=End(None, "the hub is away", permanent=False, unfetched=True))
FETCHING = run.Fetching(epoch=1, bytes=700)
HUB = HfSource(repository="o/r")
Part = Callable[..., OwnPart]


@pytest.fixture
def part(hand_log: HandLog, node: NodeId, assigned: Callable[..., Assigned]) -> Part:
    """What is folded after one assignment and these run facts."""

    def make(*facts: run.RunFact) -> OwnPart:
        hand_log.given(subjects.node(node), assigned())
        for fact in facts:
            hand_log.given(subjects.run(node, REPLICA), fact)
        return reduce(evolve, hand_log.commits, OwnPart())

    return make


def test_a_fetch_is_reported_once_after_the_install_and_then_the_load(part: Part) -> None:
    (first,) = missing_reports(part(), [replace(BEING_FETCHED, installing=True)], {})
    assert isinstance(first.fact, run.Installing)
    (second,) = missing_reports(part(first.fact), [BEING_FETCHED], {})
    assert FETCHING == second.fact
    assert [] == missing_reports(part(FETCHING), [BEING_FETCHED], {})
    (third,) = missing_reports(part(FETCHING), [LIVING], {})
    assert isinstance(third.fact, run.Loading)


def test_no_deadline_of_loading_runs_while_files_are_fetched(part: Part) -> None:
    assert () == steer(part(FETCHING), [BEING_FETCHED], {}, 1e6).actions


def test_a_fetch_that_failed_is_said_and_tried_again_ever_slower_until_it_is_given_up(part: Part) -> None:
    tries: dict[ReplicaId, Tries] = {}
    now, waits = 0.0, list[float]()
    while True:
        host = replace(NOT_FETCHED, incarnation=Incarnation(f"i-{len(waits)}"))
        before = steer(part(), [], tries, now)
        assert any(isinstance(action, Start) for action in before.actions)
        after = steer(part(FETCHING), [host], before.tries, now)
        assert () == after.actions, "not forgotten before it is said, and not started at once"
        tries = dict(after.tries)
        if tries[REPLICA].given_up is not None:
            break
        (report,) = missing_reports(part(FETCHING), [host], tries)
        assert run.Stopped(epoch=1, why="exited", detail="the hub is away") == report.fact
        waits.append(tries[REPLICA].next_at - now)
        now = tries[REPLICA].next_at
    assert [1.0, 4.0, 16.0, 64.0, 256.0, 300.0] == waits[:6]
    (report,) = missing_reports(part(FETCHING), [host], tries)
    assert run.Failed(epoch=1, reason="the hub is away", permanent=False, starts=len(waits) + 1) == report.fact


def test_a_fetch_whose_agent_did_not_live_to_see_its_end_is_begun_again_without_a_word(part: Part) -> None:
    own = part(FETCHING)
    assert (Start(own.assignments[REPLICA], None),) == steer(own, [], {}, 0.0).actions
    assert [] == missing_reports(own, [], {})
    (report,) = missing_reports(own, [], {}, shutdown=True)
    assert isinstance(report.fact, run.Stopped)


def test_the_fold_knows_what_lies_in_the_store_as_the_log_was_told(hand_log: HandLog, node: NodeId) -> None:
    hand_log.given(subjects.machine(node), machine.FilesCame(files="a", bytes=7))
    hand_log.given(subjects.machine(node), machine.FilesCame(files="b", bytes=8))
    hand_log.given(subjects.machine(node), machine.FilesGone(files="a"))
    assert {"b": 8} == reduce(evolve, hand_log.commits, OwnPart()).files


def test_bytes_rate_and_phase_follow_a_fetch_from_file_to_file() -> None:
    # given a fetch of two files that waits
    progress = FetchProgress(1000)
    assert ("waiting", 0, 0.0) == (progress.phase, progress.fetched, progress.rate)
    # when a steady stream comes
    progress = begun(progress, "one", 10.0)
    for tenth in range(1, 61):
        progress = moved(progress, tenth * 10, 10.0 + tenth / 10)
    # then it is at the rate of the stream, in few marks
    assert ("one", 600) == (progress.file, progress.fetched)
    assert pytest.approx(100.0) == progress.rate
    assert len(progress.marks) <= 10
    # and the next file counts on
    progress = moved(begun(finished(progress, 600), "two", 16.0), 100, 17.0)
    assert ("two", 700) == (progress.file, progress.fetched)
    assert pytest.approx(100.0, rel=0.05) == progress.rate
    # and one that had to begin anew makes no negative rate
    again = moved(begun(finished(FetchProgress(1000), 0), "one", 0.0), 500, 1.0)
    assert 0.0 == moved(moved(again, 0, 2.0), 0, 20.0).rate
    assert ("placing", 1000) == (placing(progress).phase, placing(progress).fetched)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 50), st.floats(0, 10)), max_size=60),
    st.text(max_size=400),
    st.integers(0, 1 << 59),
)
def test_whatever_came_of_whatever_file_can_be_told(steps: list[tuple[int, float]], file: str, total: int) -> None:
    progress, now = begun(FetchProgress(total), file, 0.0), 0.0
    for here, passed in steps:
        now += passed
        progress = moved(progress, here, now)
    assert len(progress.marks) <= 12
    for said in fetch_said("f", [REPLICA], HUB, progress, now):
        assert said == FetchSaid.model_validate_json(said.model_dump_json())
        assert said.fetched <= said.total


def test_a_source_is_told_without_what_may_be_secret_in_it() -> None:
    signed = HttpsSource(url="https://user:word@models.example/a/m.gguf?X-Amz-Signature=abc#frag")
    assert "https://models.example/a/m.gguf" == told_source(signed)
    assert "hf:o/r" == told_source(HUB)
    assert "s3://bucket/a/m.gguf" == told_source(S3Source(bucket="bucket", key="a/m.gguf"))


def test_what_moves_in_a_fetch_is_told_at_once_and_time_alone_is_no_news(node: NodeId) -> None:
    (fetch,) = fetch_said("f", [REPLICA], HUB, moved(begun(FetchProgress(10), "f", 0.0), 4, 1.0), 1.0)
    first = told(node, (), (), (), (fetch,))
    later = told(node, (), (), (), (fetch.model_copy(update={"fetching_s": 9.0, "rate": 1.0}),))
    assert not is_due(first, later, PROGRESS_AGAIN_S - 0.1)
    assert is_due(first, later, PROGRESS_AGAIN_S), "what stands still is said again"
    assert is_due(first, told(node, (), (), (), (fetch.model_copy(update={"fetched": 5}),)), 0.0)


def test_a_signal_full_of_fetches_is_no_larger_than_what_is_read(node: NodeId) -> None:
    fetch = FetchSaid(
        replica=ReplicaId("m" * 40), source="s" * 300, phase="fetching", file="f" * 300, fetched=1 << 60, total=1 << 60
    )
    progress = told(node, (), (), (), (fetch,) * 100)
    assert 16 == len(progress.fetches)
    assert len(progress.model_dump_json(exclude_defaults=True)) <= PROGRESS_BYTES // 4
    assert progress == NodeProgress.model_validate_json(progress.model_dump_json())
