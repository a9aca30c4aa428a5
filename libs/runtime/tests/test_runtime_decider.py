"""The decider on a real log: it reads its own writes, loses without harm, and knows when to be silent."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from weft_contracts import subjects
from weft_contracts.commit import MAX_COMMIT_BYTES, Cause, Commit, Decision, Guard, Recorded
from weft_contracts.facts.mesh import FormatRaised
from weft_contracts.facts.node import Cordoned, Healthy, Labelled, Uncordoned
from weft_contracts.formats import READS
from weft_contracts.ids import CorrelationId, NodeId
from weft_eventlog import EventLog, LogUnavailable, Projection
from weft_runtime.decider import Decider
from weft_runtime.health import Health
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

A, B = subjects.node(NodeId("n-a")), subjects.node(NodeId("n-b"))
CAUSE = Cause(CorrelationId("c"))


class Stand:
    """A leadership in the hand."""

    held = True

    async def release(self) -> None:
        await asyncio.sleep(0)
        self.held = False


class Deciding:
    """A state folded from a real log, and a decider with a rule over it."""

    def __init__(self, log: EventLog, rule: Callable[["Deciding"], Sequence[Decision]]) -> None:
        self.log = log
        self.folded: list[Recorded] = []
        self.health = Health()
        self.stand = Stand()
        self.calls = 0
        self.projection = Projection(log, name="test", fold=self.folded.extend)
        self._rule = rule
        stand: Any = self.stand
        decider = Decider(log, self.projection, stand, self.health, self._decide)
        self.tasks = [asyncio.create_task(self.projection.run()), asyncio.create_task(decider.run())]

    def _decide(self, now: float, seed: int) -> Sequence[Decision]:
        assert now > 1.7e9
        assert 0 <= seed < 2**53
        self.calls += 1
        return self._rule(self)

    def last(self, aggregate: subjects.Aggregate) -> int:
        return max((commit.sequence for commit in self.folded if commit.aggregate == aggregate), default=0)

    async def rests(self) -> None:
        """Return after three further calls that decided nothing."""
        head, calls = await self.log.head(), self.calls

        async def probe() -> bool:
            return self.calls >= calls + 3

        await until(probe)
        assert head == await self.log.head()

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)


Start = Callable[[Callable[[Deciding], Sequence[Decision]]], Deciding]


def cordon(state: Deciding, aggregate: subjects.Aggregate = A, *, expected: int | None = None) -> Decision:
    sequence = state.last(aggregate) if expected is None else expected
    return Decision((Commit(aggregate, (Cordoned(),), Guard(aggregate, sequence), CAUSE),), "test")


@pytest.fixture
async def log(mesh_server: MeshServer) -> EventLog:
    return EventLog(await mesh_server.root(), actor="test")


@pytest.fixture
async def start(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setattr("weft_runtime.decider.TICK", 0.1)
    started: list[Deciding] = []

    def starting(rule: Callable[[Deciding], Sequence[Decision]]) -> Deciding:
        started.append(Deciding(log, rule))
        return started[-1]

    yield starting
    for each in started:
        await each.stop()


async def say(log: EventLog, aggregate: subjects.Aggregate, *facts: Any) -> int:
    return (await log.append(Commit(aggregate, facts, None, CAUSE)))[0]


async def heads(log: EventLog, count: int) -> None:
    async def probe() -> bool:
        return await log.head() >= count

    await until(probe)


async def test_it_reads_its_own_writes_and_so_decides_nothing_twice(start: Start) -> None:
    """The rule says for each of ten what is lacking; a decider that didn't wait would lose its second guard."""
    deciding = start(lambda state: [cordon(state)] if len(state.folded) < 10 else [])
    await heads(deciding.log, 10)
    await deciding.rests()
    assert list(range(1, 11)) == [commit.sequence for commit in deciding.folded]


async def test_what_it_missed_is_decided_at_the_tick_though_the_log_is_silent(start: Start) -> None:
    """Rules depend on time too."""
    deciding = start(lambda state: [cordon(state)] if state.calls == 4 else [])
    await heads(deciding.log, 1)


async def test_a_decision_that_lost_is_made_again_from_what_is_so_now(start: Start) -> None:
    # given a rule whose first decision rests on what is no longer so
    lost: list[int] = []

    def rule(state: Deciding) -> Sequence[Decision]:
        if any(isinstance(fact, Cordoned) for commit in state.folded for fact in commit.facts):
            return []
        lost.append(state.last(A))
        return [cordon(state, expected=0 if len(lost) == 1 else None)]

    deciding = start(lambda state: rule(state) if state.folded else [])
    # when
    await say(deciding.log, A, Healthy())
    # then it is made again, and lands once
    await heads(deciding.log, 2)
    await deciding.rests()
    assert 2 == len(lost)
    assert 2 == await deciding.log.head()


async def test_nothing_is_decided_about_a_suspect_and_the_rest_goes_on(start: Start, log: EventLog) -> None:
    # given a commit of A that can't be read
    await log._js.publish(A.subject("joined"), b"garbled")

    def rule(state: Deciding) -> Sequence[Decision]:
        guarded = Decision((Commit(B, (Uncordoned(),), Guard(A, 0), CAUSE),), "rests on A")
        return [] if state.last(B) else [cordon(state, A), guarded, cordon(state, B)]

    deciding = start(rule)
    # then only what doesn't touch A is appended, and health says why
    await heads(log, 2)
    await deciding.rests()
    assert [(A, 0), (B, 1)] == [(commit.aggregate, len(commit.facts)) for commit in deciding.folded]
    assert [["suspect"], True] == [list(deciding.health.problems), "node.n-a" in deciding.health.problems["suspect"]]


async def test_it_is_silent_while_the_projection_is_halted(start: Start, log: EventLog) -> None:
    # given a fact from the future
    await log._js.publish(A.subject("sang"), b'[{"type":"sang","v":1}]')
    deciding = start(lambda state: [cordon(state, B)])

    async def said() -> bool:
        return "projection" in deciding.health.problems

    # when, then
    await until(said)
    await asyncio.sleep(0.5)
    assert (0, 1) == (deciding.calls, await log.head())
    assert "node.sang version 1" in deciding.health.problems["projection"]


async def test_one_of_an_earlier_release_lets_another_lead_once_the_upgrade_is_finished(
    start: Start, log: EventLog
) -> None:
    deciding = start(lambda state: [])
    await deciding.rests()
    # when an upgrade to a later release is finished
    await say(log, subjects.MESH, FormatRaised(fact="node.assigned", version=READS["node.assigned"] + 1))

    async def let_go() -> bool:
        return not deciding.stand.held

    # then
    await until(let_go)
    assert "upgrade it, there is no way back" in deciding.health.problems["projection"]


async def test_it_is_silent_while_another_instance_leads(start: Start, log: EventLog) -> None:
    deciding = start(lambda state: [] if state.folded else [cordon(state)])
    deciding.stand.held = False
    await asyncio.sleep(0.5)
    assert (0, 0) == (deciding.calls, await log.head())
    deciding.stand.held = True
    await heads(log, 1)


async def test_a_log_that_is_away_is_tried_again(start: Start, log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    append, tries = log.append, [1]

    async def failing(*commits: Commit, timeout: float = 20.0) -> tuple[int, ...]:
        if tries:
            tries.pop()
            raise LogUnavailable("no answer")
        return await append(*commits, timeout=timeout)

    monkeypatch.setattr(log, "append", failing)
    start(lambda state: [] if state.folded else [cordon(state)])
    await heads(log, 1)
    assert [] == tries


async def test_a_decision_too_large_for_the_log_is_named_and_holds_up_no_other(start: Start, log: EventLog) -> None:
    def rule(state: Deciding) -> Sequence[Decision]:
        huge = Commit(A, (Labelled(labels={"x": "y" * MAX_COMMIT_BYTES}),), Guard(A, 0), CAUSE)
        return [] if state.last(B) else [Decision((huge,), "huge"), cordon(state, B)]

    deciding = start(rule)
    await heads(log, 1)
    await deciding.rests()
    assert "65536 are allowed" in deciding.health.problems["decision"]


async def test_an_error_of_the_rule_ends_it(start: Start) -> None:
    def broken(_: Deciding) -> Sequence[Decision]:
        raise RuntimeError("cannot decide")

    deciding = start(broken)
    with pytest.raises(RuntimeError, match="cannot decide"):
        await asyncio.wait_for(deciding.tasks[1], 30)
