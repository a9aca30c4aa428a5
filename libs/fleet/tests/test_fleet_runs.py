"""A replica's process as its own facts tell it, and the one word that a replica's runs make."""

import pytest
from weft_contracts.commit import Cause, Recorded
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.run import (
    Degraded,
    Exceeded,
    Failed,
    Fetching,
    Installing,
    Loading,
    Ready,
    RunFact,
    Stopped,
    Stopping,
)
from weft_contracts.facts.values import Member, MetadataFile, Receipt
from weft_contracts.ids import CorrelationId, EventId, Incarnation, ModelId, NodeId, ReplicaId
from weft_contracts.states import Phase, ReplicaState
from weft_contracts.subjects import run
from weft_fleet import ReplicaView, RunView
from weft_fleet.changed import changed
from weft_fleet.run_view import evolve_run

NODE, ID = NodeId("n-a"), ReplicaId("m-toy-1")
ONE, TWO = Incarnation("i-1"), Incarnation("i-2")
TOKENIZER = MetadataFile(name="tokenizer.json", size=1, blake3="0" * 64)
LOADING = Loading(epoch=1, incarnation=ONE)
READY = Ready(epoch=1, incarnation=ONE, port=9, engine="vllm", engine_version="0.9", metadata=(TOKENIZER,))
DIED = Stopped(epoch=1, why="exited", detail="killed")


def after(*facts: RunFact) -> RunView:
    """The run after these facts, each a commit of its own."""
    found: RunView | None = None
    for sequence, fact in enumerate(facts, start=1):
        event, correlation = EventId(f"e{sequence}"), CorrelationId(f"c{sequence}")
        recorded = Recorded(sequence, run(NODE, ID), (fact,), event, correlation, None, "test", 10.0 * sequence)
        found = evolve_run(NODE, found, fact, recorded)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("fact", "phase"),
    [
        (Installing(epoch=1, engine="vllm"), "installing"),
        (Fetching(epoch=1, bytes=1), "fetching"),
        (LOADING, "loading"),
        (READY, "ready"),
        (Degraded(epoch=1, incarnation=ONE, why="stands still"), "degraded"),
        (Stopping(epoch=1, incarnation=ONE), "stopping"),
        (DIED, "stopped"),
        (Failed(epoch=1, reason="no file", permanent=True, starts=3), "failed"),
    ],
)
@pytest.mark.parametrize("before", [(), (LOADING,), (READY,)])
def test_a_run_is_in_the_phase_of_its_last_fact_and_stamped_by_its_commit(
    before: tuple[RunFact, ...], fact: RunFact, phase: Phase
) -> None:
    found, number = after(*before, fact), len(before) + 1
    assert phase == found.phase
    stamp = (found.node, found.epoch, found.event_id, found.correlation_id, found.sequence, found.at)
    assert (NODE, 1, f"e{number}", f"c{number}", number, 10.0 * number) == stamp


def test_a_run_that_is_ready_is_known_with_its_engine_and_where_it_is_reached() -> None:
    found = after(LOADING, READY)
    assert (ONE, 9, "vllm", "0.9", (TOKENIZER,)) == (
        found.incarnation,
        found.port,
        found.engine,
        found.engine_version,
        found.metadata,
    )


def test_the_engine_that_is_installed_is_known_while_its_files_are_fetched_and_loaded() -> None:
    steps = (Installing(epoch=1, engine="vllm"), Fetching(epoch=1, bytes=1), LOADING)
    assert ["vllm"] * 3 == [after(*steps[:count]).engine for count in (1, 2, 3)]
    assert after(Fetching(epoch=1, bytes=1)).engine is None
    assert after(LOADING).engine is None


@pytest.mark.parametrize(
    ("fact", "phase", "reason"),
    [
        (Degraded(epoch=1, incarnation=ONE, why="stands still"), "degraded", "stands still"),
        (Stopping(epoch=1, incarnation=ONE), "stopping", ""),
    ],
)
def test_the_same_process_is_still_reached_where_it_was_while_it_degrades_or_stops(
    fact: RunFact, phase: Phase, reason: str
) -> None:
    ready, still = after(READY), after(READY, fact)
    stamp = {name: getattr(still, name) for name in ("event_id", "correlation_id", "sequence", "at")}
    assert changed(ready, phase=phase, reason=reason, **stamp) == still


def test_a_run_that_exceeds_its_claim_is_the_same_run_with_that_said() -> None:
    exceeded = Exceeded(epoch=1, incarnation=ONE, device=0, claimed=10, used=20)
    ready, exceeds = after(READY), after(READY, exceeded)
    assert changed(ready, claimed=10, used=20) == exceeds
    # of another start it says nothing, and the next start has nothing of it
    assert ready == after(READY, exceeded.model_copy(update={"incarnation": TWO}))
    assert 0 == after(READY, exceeded, DIED, LOADING).used


@pytest.mark.parametrize("fact", [Degraded(epoch=1, incarnation=TWO, why="slow"), Stopping(epoch=1, incarnation=TWO)])
def test_of_another_process_nothing_is_known_but_what_it_says(fact: Degraded | Stopping) -> None:
    for found in (after(READY, fact), after(fact)):
        assert (TWO, None, None, "", ()) == (
            found.incarnation,
            found.port,
            found.engine,
            found.engine_version,
            found.metadata,
        )


def test_a_run_that_ended_says_why_and_by_which_word_where_it_has_no_more() -> None:
    told, untold = after(DIED), after(Stopped(epoch=1, why="shutdown"))
    assert ("exited", "killed") == (told.stopped, told.reason)
    assert ("shutdown", "shutdown") == (untold.stopped, untold.reason)


def test_a_run_that_was_given_up_says_after_how_many_starts_and_whether_another_would_do_the_same() -> None:
    found = after(LOADING, Failed(epoch=1, reason="no file", permanent=True, starts=3))
    assert ("no file", True, 3) == (found.reason, found.permanent, found.starts)
    assert not after(Failed(epoch=1, reason="no file", permanent=False, starts=3)).permanent


def test_why_a_process_died_is_kept_while_it_starts_again_and_not_once_it_is_ready() -> None:
    again = Loading(epoch=1, incarnation=TWO)
    assert "" == after(LOADING).last_end
    assert "killed" == after(LOADING, DIED, again).last_end
    assert "killed" == after(LOADING, DIED, again, Loading(epoch=1, incarnation=Incarnation("i-3"))).last_end
    assert "" == after(LOADING, DIED, again, READY).last_end
    # one that was told to end did not die
    assert "" == after(LOADING, Stopped(epoch=1, why="shutdown", detail="the mesh stops"), again).last_end


RECEIPT = Receipt(
    position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0.0, refusals={}, candidates=()
)
MEMBERS = tuple(Member(node=NodeId(f"n-{name}"), rank=rank, devices=()) for rank, name in enumerate("abc"))
PLACED = Placed(model=ModelId("m-toy"), revision=1, epoch=1, members=MEMBERS, receipt=RECEIPT)
UNPLACEABLE = Unplaceable(model=ModelId("m-toy"), revision=1, reason="no room", receipt=RECEIPT)
VIEW = ReplicaView(ID, ModelId("m-toy"), 1, 1, "d", Cause(CorrelationId("c")))


def placed(*phases: Phase, **more: object) -> ReplicaView:
    """A replica over three nodes, of which the first have runs in these phases."""
    runs = {member.node: changed(after(READY), phase=phase) for member, phase in zip(MEMBERS, phases, strict=False)}
    return changed(VIEW, placed=PLACED, members=MEMBERS, runs=runs, **more)


GONE = frozenset({NodeId("n-a")})


@pytest.mark.parametrize(
    ("view", "state"),
    [
        (VIEW, "added"),
        (changed(VIEW, unplaceable=UNPLACEABLE), "unplaceable"),
        (placed(unplaceable=UNPLACEABLE), "placed"),
        (placed(), "placed"),
        (placed("ready", "ready"), "loading"),
        (placed("ready", "ready", "installing"), "loading"),
        (placed("fetching", "ready", "ready"), "loading"),
        (placed("ready", "loading", "degraded"), "loading"),
        (placed("ready", "ready", "ready"), "ready"),
        (placed("ready", "degraded", "ready"), "degraded"),
        (placed("ready", "stopping", "loading"), "stopping"),
        (placed("ready", "stopping", "stopped"), "stopped"),
        (placed("ready", "ready", "ready", gone=GONE), "lost"),
        (placed("stopped", gone=GONE), "lost"),
        (placed("failed", "stopped", gone=GONE), "failed"),
        (placed("ready", "ready", "ready", wanted=False, holds_claim=True), "stopping"),
        (placed("ready", "ready", "ready", wanted=False), "stopped"),
        (placed("failed", wanted=True, evicted=True, holds_claim=True), "stopping"),
        (placed("failed", wanted=True, evicted=True), "stopped"),
    ],
)
def test_a_replica_is_what_the_worst_of_its_runs_is_and_what_is_not_wanted_is_ending_or_over(
    view: ReplicaView, state: ReplicaState
) -> None:
    assert state == view.state


def test_the_leader_is_the_member_of_rank_zero_wherever_it_stands() -> None:
    assert MEMBERS[0] == changed(VIEW, members=MEMBERS[::-1]).leader
    assert VIEW.leader is None
