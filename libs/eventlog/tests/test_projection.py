"""Projections on a real server: order, read-your-writes, and what must not be decided from."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Recorded
from weft_contracts.facts import node
from weft_contracts.facts.fact import Voided
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.formats import READS
from weft_contracts.ids import CorrelationId, EventId, NodeId
from weft_contracts.suspects import RUNS_SUSPECT
from weft_eventlog import EventLog, Projection
from weft_testing.lagging_nats import LaggingNats
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

A = subjects.node(NodeId("n-a"))
CAUSE = Cause(CorrelationId("c"))


class Watched:
    """A projection that runs, and what it folded."""

    def __init__(self, log: EventLog, *, after: int = 0, event_id: str | None = None) -> None:
        self.folded: list[Recorded] = []
        known = EventId(event_id) if event_id else None
        self.projection = Projection(log, name="test", fold=self.folded.extend, after=after, event_id=known)
        self.task = asyncio.create_task(self.projection.run())

    async def folds(self, sequence: int) -> None:
        await self.projection.wait_for(sequence, timeout=30)

    async def halted(self) -> str:
        """Why it may not be decided from, once it is so."""

        async def why() -> str | None:
            return self.projection.halted

        return await until(why) or ""

    async def caught_up(self) -> None:
        await asyncio.wait_for(self.projection.caught_up.wait(), 30)


@pytest.fixture
async def log(mesh_server: MeshServer) -> EventLog:
    return EventLog(await mesh_server.root(), actor="test")


@pytest.fixture
async def watched(log: EventLog) -> AsyncIterator[Watched]:
    watched = Watched(log)
    yield watched
    watched.task.cancel()


async def healthy(log: EventLog, times: int = 1) -> int:
    last = 0
    for _ in range(times):
        (last,) = await log.append(Commit(A, (node.Healthy(),), None, CAUSE))
    return last


async def raw(log: EventLog, subject: str, body: bytes, **headers: str) -> int:
    ack = await log._js.publish(subject, body, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return ack.seq


async def test_everything_is_folded_once_and_in_order_and_ones_own_writes_can_be_awaited(
    log: EventLog, watched: Watched
) -> None:
    await watched.caught_up()
    last = await healthy(log, 25)
    await watched.folds(last)
    assert list(range(1, 26)) == [recorded.sequence for recorded in watched.folded]


async def test_a_projection_starts_behind_its_checkpoint(log: EventLog) -> None:
    await healthy(log, 5)
    watched = Watched(log, after=3)
    await watched.caught_up()
    assert [4, 5] == [recorded.sequence for recorded in watched.folded]
    watched.task.cancel()


async def test_a_server_that_lags_and_says_that_there_is_no_more_makes_nothing_caught_up(
    log: EventLog, mesh_server: MeshServer
) -> None:
    await healthy(log, 5)
    async with LaggingNats(mesh_server.url, gives=2) as door:
        watched = Watched(EventLog(await mesh_server.root(servers=door.url), actor="test"))
        await watched.folds(2)
        await door.held_back()
        assert not watched.projection.caught_up.is_set()
        door.catch_up()
        await watched.caught_up()
        assert 5 == watched.projection.position
        watched.task.cancel()


async def test_a_projection_of_which_the_log_has_nothing_or_nothing_more_is_caught_up(log: EventLog) -> None:
    await healthy(log, 3)
    other = subjects.node(NodeId("n-b"))
    await log.append(Commit(other, (node.Healthy(),), None, CAUSE))
    for filters, position in ((A.filter,), 3), ((subjects.kind_filter("key"),), 0):
        projection = Projection(log, name="test", filters=filters, fold=lambda _: None)
        task = asyncio.create_task(projection.run())
        await asyncio.wait_for(projection.caught_up.wait(), 30)
        assert position == projection.position
        task.cancel()


async def test_an_empty_log_is_caught_up_at_once(watched: Watched) -> None:
    await watched.caught_up()
    assert 0 == watched.projection.position


@pytest.mark.usefixtures("short_tries")
async def test_a_restart_of_the_server_loses_and_repeats_nothing(
    log: EventLog, watched: Watched, mesh_server: MeshServer
) -> None:
    await healthy(log, 3)
    mesh_server.restart()
    last = await healthy(log, 3)
    await watched.folds(last)
    assert list(range(1, 7)) == [recorded.sequence for recorded in watched.folded]
    assert watched.projection.halted is None


async def test_a_type_that_the_reader_does_not_know_halts_deciding_and_says_which(
    log: EventLog, watched: Watched
) -> None:
    sequence = await raw(log, A.subject("sang"), b'[{"type":"sang","v":1}]')
    await watched.folds(sequence)
    assert "node.sang version 1" in (watched.projection.halted or "")


async def test_an_unknown_type_that_its_writer_calls_skippable_is_passed_over(log: EventLog, watched: Watched) -> None:
    sequence = await raw(log, A.subject("sang"), b'[{"type":"sang","v":1}]', Weft_Skippable="sang")
    await watched.folds(sequence)
    assert (None, [()]) == (watched.projection.halted, [recorded.facts for recorded in watched.folded])


async def test_a_log_whose_upgrade_to_a_later_release_is_finished_halts_an_earlier_one_for_good(
    log: EventLog, watched: Watched
) -> None:
    known = READS["node.assigned"]
    (first,) = await log.append(
        Commit(subjects.MESH, (FormatRaised(fact="node.assigned", version=known),), None, CAUSE)
    )
    await watched.folds(first)
    assert (None, None) == (watched.projection.halted, watched.projection.outdated)
    later = FormatRaised(fact="node.assigned", version=known + 1)
    (second,) = await log.append(Commit(subjects.MESH, (later,), None, CAUSE))
    await watched.folds(second)
    assert watched.projection.halted == watched.projection.outdated
    assert f"node.assigned may be written in version {known + 1}" in (watched.projection.outdated or "")
    assert "upgrade it, there is no way back" in (watched.projection.outdated or "")
    # and the fold has it, as any other fact
    assert [later] == list(watched.folded[-1].facts)
    # and what can't be read behind it is no other reason
    third = await raw(log, A.subject("sang"), b'[{"type":"sang","v":1}]')
    await watched.folds(third)
    assert watched.projection.halted == watched.projection.outdated


async def test_an_event_that_cannot_be_read_makes_its_aggregate_suspect_until_it_is_voided(
    log: EventLog, watched: Watched
) -> None:
    # given
    sequence = await raw(log, A.subject("joined"), b"garbled")
    last = await healthy(log)
    # then the projection goes on, and the aggregate is set aside
    await watched.folds(last)
    assert [A] == list(watched.projection.suspects)
    assert [(), (node.Healthy(),)] == [recorded.facts for recorded in watched.folded]
    assert watched.projection.halted is None
    # when an operator voids it
    (last,) = await log.append(Commit(A, (Voided(sequence=sequence, why="garbled by hand"),), None, CAUSE))
    # then it is decided again
    await watched.folds(last)
    assert {} == watched.projection.suspects


async def test_a_worker_can_make_no_more_suspects_than_anybody_remembers(log: EventLog, watched: Watched) -> None:
    last = 0
    for number in range(RUNS_SUSPECT + 20):
        last = await raw(log, f"weft.ev.run.n-a.m-{number}.loading", b'[{"type":"sang","v":1}]')
    await watched.folds(last)
    kept = [aggregate.key for aggregate in watched.projection.suspects]
    assert (None, RUNS_SUSPECT, f"n-a.m-{RUNS_SUSPECT + 19}") == (watched.projection.halted, len(kept), kept[-1])


async def test_a_log_that_ends_before_the_checkpoint_refuses_to_be_decided_from(log: EventLog) -> None:
    await healthy(log, 2)
    watched = Watched(log, after=9)
    assert "ends at 2" in await watched.halted()
    watched.task.cancel()


async def test_another_event_at_the_checkpoint_refuses_to_be_decided_from(log: EventLog) -> None:
    await healthy(log, 2)
    watched = Watched(log, after=2, event_id="not-this-one")
    assert "another event stands at 2" in await watched.halted()
    watched.task.cancel()


async def test_an_error_of_the_fold_ends_the_projection(log: EventLog) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("cannot fold")

    projection = Projection(log, name="broken", fold=broken)
    await healthy(log)
    with pytest.raises(RuntimeError, match="cannot fold"):
        await asyncio.wait_for(projection.run(), 30)


async def test_reading_between_two_positions_gives_just_those(log: EventLog) -> None:
    await healthy(log, 6)
    assert [3, 4] == [recorded.sequence async for recorded in log.read(after=2, upto=4)]
    assert [] == [recorded.sequence async for recorded in log.read("weft.ev.model.>")]
    assert [] == [recorded.sequence async for recorded in log.read(after=6)]


async def test_a_projection_knows_how_many_commits_it_lacks_while_it_folds(log: EventLog) -> None:
    last = await healthy(log, 3)
    lacked: list[int] = []

    def fold(commits: Sequence[Recorded]) -> None:
        lacked.append(projection.behind)

    projection = Projection(log, name="test", fold=fold)
    assert 0 == projection.behind
    task = asyncio.create_task(projection.run())
    await projection.wait_for(last, timeout=30)
    task.cancel()
    assert (3, 0) == (lacked[0], projection.behind)


async def test_the_log_says_how_large_it_is_and_how_large_it_may_become(log: EventLog) -> None:
    before = await log.size()
    last = await healthy(log, 5)
    after = await log.size()
    assert (last, True, 1, 1) == (after.last_sequence, after.bytes > before.bytes, after.copies, after.current)
    assert after.stored >= after.bytes
    assert (0, 0) == (after.limit, after.storage_limit)  # none is set here
