"""What is started, ended and reported, case by case."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import pytest
from weft_contracts import subjects
from weft_contracts.facts import run
from weft_contracts.facts.node import Assigned, Unassigned
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_testing import HandLog
from weft_worker_agent.domain.hosts import Answering, End, Host
from weft_worker_agent.domain.loading import STEP_BYTES, LoadBounds, seen
from weft_worker_agent.domain.own_part import OwnPart, evolve
from weft_worker_agent.domain.process_ends import MemoryKills, sentence_of
from weft_worker_agent.domain.reports import VANISHED, missing_reports
from weft_worker_agent.domain.restarts import GivenUp, Tries
from weft_worker_agent.domain.stall import MOVE_S, SILENT_FROM_S, Pulse, StallBounds, heard, passed, stall_of
from weft_worker_agent.domain.steering import Forget, Retire, Signal, Start, steer

REPLICA = ReplicaId("m-x-1")
ONE = Incarnation("i-1")
LIVING = Host(REPLICA, 1, ONE, started_at=0.0)
READY = replace(LIVING, answering=Answering(4242, "simulated", "1", ()))
KILLED = "the engine's process was killed by SIGKILL, not by its worker"
CRASHED = replace(LIVING, end=End(-9, KILLED, permanent=False))


@pytest.fixture
def part(hand_log: HandLog, node: NodeId, assigned: Callable[..., Assigned]) -> Callable[..., OwnPart]:
    """What is folded after one assignment and these run facts; `retired` adds the retirement."""

    def make(*facts: run.RunFact, retired: float | None = None, epoch: int = 1) -> OwnPart:
        hand_log.given(subjects.node(node), assigned(epoch=epoch))
        for fact in facts:
            hand_log.given(subjects.run(node, REPLICA), fact)
        if retired is not None:
            hand_log.given(subjects.node(node), Unassigned(replica=REPLICA, deadline_s=retired, why="-"))
        return reduce(evolve, hand_log.commits, OwnPart())

    return make


LOADING = run.Loading(epoch=1, incarnation=ONE)
IS_READY = run.Ready(epoch=1, incarnation=ONE, port=4242, engine="simulated", engine_version="1")


def test_an_assignment_without_a_host_is_started(part: Callable[..., OwnPart]) -> None:
    own = part()

    assert (Start(own.assignments[REPLICA], None),) == steer(own, [], {}, 0.0).actions


def test_a_running_assignment_needs_nothing(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY)

    assert () == steer(own, [READY], {}, 0.0).actions
    assert [] == missing_reports(own, [READY], {})


def test_a_retired_replica_finishes_within_its_deadline_and_is_then_signalled(
    part: Callable[..., OwnPart],
) -> None:
    own = part(LOADING, IS_READY, retired=30)
    asked = replace(READY, retire_at=100.0, retire_within=30.0)

    assert (Retire(ONE, 30),) == steer(own, [READY], {}, 100.0).actions
    assert () == steer(own, [asked], {}, 129.0).actions
    assert (Signal(ONE, "TERM", "it did not finish within 30 s"),) == steer(own, [asked], {}, 130.0).actions
    termed = replace(asked, term_at=130.0)
    assert (Signal(ONE, "KILL", "it did not end when asked to"),) == steer(own, [termed], {}, 135.0).actions


def test_a_host_of_an_older_epoch_ends_before_the_new_one_starts(part: Callable[..., OwnPart]) -> None:
    own = part(epoch=2)

    assert (Retire(ONE, 0.0),) == steer(own, [READY], {}, 0.0).actions


def test_a_host_that_the_log_does_not_know_is_ended(part: Callable[..., OwnPart]) -> None:
    stranger = replace(READY, replica=ReplicaId("m-y-7"))

    assert Retire(ONE, 0.0) in steer(part(), [stranger], {}, 0.0).actions


def test_the_shutdown_starts_nothing_and_gives_running_requests_their_time(
    part: Callable[..., OwnPart],
) -> None:
    own = part(LOADING, IS_READY)

    assert (Retire(ONE, 8.0),) == steer(own, [READY], {}, 0.0, shutdown_grace_s=8.0).actions
    assert () == steer(own, [], {}, 0.0, shutdown_grace_s=8.0).actions


def test_a_worker_that_ends_at_once_gives_nobody_more_time(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY, retired=30)
    asked = replace(READY, retire_at=100.0, retire_within=30.0)

    assert (Signal(ONE, "TERM", "its worker ends at once"),) == steer(
        own, [asked], {}, 101.0, shutdown_grace_s=0.0
    ).actions


def test_before_the_log_is_folded_a_shutdown_still_gives_running_requests_their_time() -> None:
    assert (Retire(ONE, 8.0),) == steer(OwnPart(), [READY], {}, 0.0, shutdown_grace_s=8.0).actions


def test_a_load_past_its_deadline_is_ended_and_is_the_runs_failure(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING)
    assert () == steer(own, [LIVING], {}, 299.0).actions

    (signal,) = steer(own, [LIVING], {}, 300.0).actions

    assert isinstance(signal, Signal)
    assert ("TERM", True) == (signal.signal, signal.for_good)
    # and when it has ended, it is not started again here: the reason is the deadline, not the signal
    ended = replace(LIVING, term_at=300.0, given_up_for=signal.why, end=End(-15, "signal 15", permanent=False))
    steering = steer(own, [ended], {REPLICA: Tries(1, (0.0,), 1)}, 301.0)
    assert () == steering.actions
    failed = run.Failed(epoch=1, reason=signal.why, permanent=False, starts=1)
    assert [failed] == [report.fact for report in missing_reports(own, [ended], steering.tries)]
    assert "not ready within 300 s" in failed.reason


def test_a_load_that_gets_on_is_given_more_time_up_to_a_bound(part: Callable[..., OwnPart]) -> None:
    own, bounds = part(LOADING), LoadBounds(base_s=300, most_s=1000)
    gets_on = replace(LIVING, grew_at=990.0)

    assert () == steer(own, [replace(LIVING, grew_at=350.0)], {}, 409.0, bounds=bounds).actions
    assert 1 == len(steer(own, [replace(LIVING, grew_at=350.0)], {}, 410.0, bounds=bounds).actions)
    assert () == steer(own, [gets_on], {}, 999.0, bounds=bounds).actions
    assert 1 == len(steer(own, [gets_on], {}, 1000.0, bounds=bounds).actions)


def test_larger_weights_have_a_later_deadline() -> None:
    assert [300.0, 340.0, 1700.0, 7200.0] == [LoadBounds().deadline_s(gib << 30) for gib in (0, 2, 70, 1000)]


def test_a_load_gets_on_when_it_has_taken_in_more_than_ever_before() -> None:
    first = seen(None, 100, 1.0)
    assert float("-inf") == first.grew_at
    grown = seen(first, 100 + STEP_BYTES, 2.0)
    assert 2.0 == grown.grew_at
    # and what is let go of and taken again is no progress
    assert grown == seen(seen(grown, 50, 3.0), 100 + STEP_BYTES, 4.0)


def test_what_is_wrong_here_alone_is_not_tried_again_here_and_may_be_right_elsewhere(
    part: Callable[..., OwnPart],
) -> None:
    own = part(LOADING)
    host = replace(LIVING, end=End(None, "/m.gguf does not exist on this node", permanent=False, local=True))

    steering = steer(own, [host], {REPLICA: Tries(1, (0.0,), 1)}, 1.0)

    assert () == steering.actions
    failed = run.Failed(epoch=1, reason="/m.gguf does not exist on this node", permanent=False, starts=1)
    assert [failed] == [report.fact for report in missing_reports(own, [host], steering.tries)]


def test_a_crashed_run_starts_again_at_most_three_times_in_ten_minutes(part: Callable[..., OwnPart]) -> None:
    own = part()
    tries: dict[ReplicaId, Tries] = {}
    hosts: list[Host] = []
    starts = 0
    for second in range(300):
        steering = steer(own, hosts, tries, float(second))
        tries = dict(steering.tries)
        for action in steering.actions:
            if isinstance(action, Start):
                starts += 1
                hosts = [replace(CRASHED, incarnation=Incarnation(f"i-{starts}"), started_at=float(second))]

    assert 4 == starts
    assert GivenUp(KILLED, permanent=False) == tries[REPLICA].given_up
    failed = run.Failed(epoch=1, reason=KILLED, permanent=False, starts=4)
    assert [failed] == [report.fact for report in missing_reports(own, hosts, tries)]


def test_a_permanent_failure_is_not_tried_again(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING)
    host = replace(LIVING, end=End(3, "the file is no GGUF", permanent=True))

    steering = steer(own, [host], {REPLICA: Tries(1, (0.0,), 1)}, 1.0)

    assert () == steering.actions
    failed = run.Failed(epoch=1, reason="the file is no GGUF", permanent=True, starts=1)
    report = missing_reports(own, [host], steering.tries)[0]
    assert (failed, own.runs[REPLICA].cause) == (report.fact, report.cause)


def test_a_run_that_the_log_knows_as_failed_is_not_started(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, run.Failed(epoch=1, reason="-", permanent=True, starts=1))

    assert () == steer(own, [], {}, 0.0).actions


def test_a_run_that_was_shut_down_starts_again(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY, run.Stopped(epoch=1, why="shutdown"))

    assert [Start] == [type(action) for action in steer(own, [], {}, 0.0).actions]


def test_reports_follow_one_another_with_their_causes(part: Callable[..., OwnPart], hand_log: HandLog) -> None:
    own = part()
    loading = missing_reports(own, [READY], {})[0]
    assert (LOADING, own.assignments[REPLICA].cause) == (loading.fact, loading.cause)

    own = part(LOADING)
    ready = missing_reports(own, [READY], {})[0]
    assert (IS_READY, hand_log.commits[-1].cause) == (ready.fact, ready.cause)


def test_a_retiring_run_is_reported_as_stopping_then_as_stopped(
    part: Callable[..., OwnPart], hand_log: HandLog
) -> None:
    own = part(LOADING, IS_READY, retired=30)
    retires = replace(READY, retire_at=0.0, retire_within=30.0)
    stopping = missing_reports(own, [retires], {})[0]
    assert (run.Stopping(epoch=1, incarnation=ONE), hand_log.commits[-1].cause) == (
        stopping.fact,
        stopping.cause,
    )

    said = hand_log.given(subjects.run(NodeId("n-aaaaaaaaaaaaaaaa"), REPLICA), stopping.fact)
    own = evolve(own, said)
    assert [] == missing_reports(own, [retires], {})
    gone = replace(retires, end=End(0, "-", permanent=False))
    stopped = missing_reports(own, [gone], {})[0]
    assert (run.Stopped(epoch=1, why="retired"), said.cause) == (stopped.fact, stopped.cause)


@pytest.mark.parametrize(("retired", "why"), [(30, "retired"), (None, "shutdown")])
def test_requests_that_a_stopped_run_could_not_finish_are_counted(
    part: Callable[..., OwnPart], retired: float | None, why: str
) -> None:
    own = part(LOADING, IS_READY, run.Stopping(epoch=1, incarnation=ONE), retired=retired)
    gone = replace(READY, retire_at=0.0, end=End(0, "-", permanent=False, unfinished=3))

    (report,) = missing_reports(own, [gone], {}, shutdown=True)

    assert isinstance(report.fact, run.Stopped)
    assert (why, 3) == (report.fact.why, report.fact.unfinished)


def test_what_a_host_says_keeps_it_from_its_work_is_reported_once_and_so_is_its_end(
    part: Callable[..., OwnPart],
) -> None:
    troubled = replace(READY, trouble="its server is away")
    degraded = missing_reports(part(LOADING, IS_READY), [troubled], {})[0].fact
    assert isinstance(degraded, run.Degraded)
    assert "its server is away" == degraded.why

    own = part(LOADING, IS_READY, degraded)
    assert [] == missing_reports(own, [replace(troubled, trouble="otherwise")], {})
    assert isinstance(missing_reports(own, [READY], {})[0].fact, run.Ready)


def test_a_stall_is_reported_once_and_so_is_its_end(part: Callable[..., OwnPart]) -> None:
    stalls = replace(READY, stalled="it stands", stalled_at=0.0)
    own = part(LOADING, IS_READY)
    degraded = missing_reports(own, [stalls], {})[0].fact
    assert isinstance(degraded, run.Degraded)

    own = part(LOADING, IS_READY, degraded)
    assert [] == missing_reports(own, [stalls], {})
    assert [IS_READY] == [report.fact for report in missing_reports(own, [READY], {})]


def test_a_run_whose_worker_vanished_is_reported_when_it_returns(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY)

    facts = [report.fact for report in missing_reports(own, [], {})]

    assert [run.Stopped(epoch=1, why="exited", detail=VANISHED)] == facts


def test_a_run_counts_as_shut_down_only_where_its_worker_says_that_it_shuts_down(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY)

    assert [run.Stopped(epoch=1, why="exited", detail=KILLED)] == [
        report.fact for report in missing_reports(own, [CRASHED], {})
    ]
    assert [run.Stopped(epoch=1, why="shutdown")] == [
        report.fact for report in missing_reports(own, [CRASHED], {}, shutdown=True)
    ]


def test_a_replica_retired_before_it_ever_started_is_reported_as_stopped(
    part: Callable[..., OwnPart],
) -> None:
    own = part(retired=5)

    assert [run.Stopped(epoch=1, why="retired")] == [r.fact for r in missing_reports(own, [], {})]
    assert () == steer(own, [], {}, 0.0).actions


def test_an_ended_host_is_forgotten_once_the_log_knows(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY)
    assert Forget(ONE) not in steer(own, [CRASHED], {}, 0.0).actions

    own = part(run.Stopped(epoch=1, why="exited"))
    assert Forget(ONE) in steer(own, [CRASHED], {}, 0.0).actions


def test_a_removed_node_ends_what_runs_and_starts_nothing(part: Callable[..., OwnPart]) -> None:
    own = replace(part(LOADING), removed=True)

    assert (Retire(ONE, 0.0),) == steer(own, [READY], {}, 0.0).actions
    assert () == steer(own, [], {}, 0.0).actions


@pytest.mark.parametrize(("letters", "last"), [(2000, "x"), (2001, "…"), (100_000, "…")])
def test_a_reason_that_fills_pages_is_cut(part: Callable[..., OwnPart], letters: int, last: str) -> None:
    host = replace(LIVING, end=End(3, "x" * letters, permanent=True))
    tries = steer(part(), [host], {}, 0.0).tries

    fact = missing_reports(part(), [host], tries)[0].fact

    assert isinstance(fact, run.Failed)
    assert (2000, last) == (len(fact.reason), fact.reason[-1])


@pytest.mark.parametrize(
    ("expected", "code", "said", "last"),
    [
        ("out of memory", 3, "out of memory", "Traceback"),
        ("the engine's process ended with status 0", 0, "", ""),
        (KILLED, -9, "", ""),
        (
            KILLED,
            -9,
            "",
            '{"level": "info", "event": "ready"}',
        ),
        (
            "the engine's process ended with status 1; its last words: no memory",
            1,
            "",
            '{"level": "error", "event": "failed", "reason": "no memory"}',
        ),
        ("the engine's process ended with status 127; its last words: no such file", 127, "", "no such file"),
    ],
)
def test_an_end_is_told_in_a_sentence(expected: str, code: int, said: str, last: str) -> None:
    assert expected == sentence_of(code, said, last)


@pytest.mark.parametrize(
    ("expected", "code", "kills"),
    [
        ("was killed by SIGSEGV", -11, MemoryKills()),
        ("was killed by signal 63", -63, MemoryKills()),
        (
            "was killed by the kernel for lack of memory (SIGKILL): its worker's control group is at its limit",
            -9,
            MemoryKills(1, 1),
        ),
        (
            "was killed by SIGKILL, not by its worker; "
            "meanwhile the kernel killed 2 processes on this machine for lack of memory",
            -9,
            MemoryKills(0, 2),
        ),
        (
            "ended with status 1; meanwhile the kernel killed 1 process of this worker for lack of memory",
            1,
            MemoryKills(1, 1),
        ),
    ],
)
def test_a_kernels_kill_for_memory_is_named_as_far_as_it_is_known(expected: str, code: int, kills: MemoryKills) -> None:
    assert f"the engine's process {expected}" == sentence_of(code, "", "", kills)


INSTALLING = run.Installing(epoch=1, engine="simulated")
BEING_INSTALLED = replace(LIVING, installing=True)
NOT_INSTALLED = replace(LIVING, end=End(None, "the index is away", permanent=False, uninstalled=True))


def test_an_install_is_reported_once_and_then_the_load(part: Callable[..., OwnPart]) -> None:
    (report,) = missing_reports(part(), [BEING_INSTALLED], {})
    assert INSTALLING.model_copy(update={"engine": part().assignments[REPLICA].fact.spec.engine}) == report.fact
    assert [] == missing_reports(part(INSTALLING), [BEING_INSTALLED], {})
    (report,) = missing_reports(part(INSTALLING), [LIVING], {})
    assert LOADING == report.fact


def test_no_deadline_of_loading_runs_while_the_engine_is_installed(part: Callable[..., OwnPart]) -> None:
    assert () == steer(part(INSTALLING), [BEING_INSTALLED], {}, 1e6).actions


def test_an_install_that_failed_is_said_and_tried_again_ever_slower_until_it_is_given_up(
    part: Callable[..., OwnPart],
) -> None:
    tries: dict[ReplicaId, Tries] = {}
    now, waits = 0.0, list[float]()
    while True:
        host = replace(NOT_INSTALLED, incarnation=Incarnation(f"i-{len(waits)}"))
        before = steer(part(), [], tries, now)
        assert any(isinstance(action, Start) for action in before.actions)
        after = steer(part(INSTALLING), [host], before.tries, now)
        assert () == after.actions, "not forgotten before it is said, and not started at once"
        tries = dict(after.tries)
        if tries[REPLICA].given_up is not None:
            break
        (report,) = missing_reports(part(INSTALLING), [host], tries)
        assert run.Stopped(epoch=1, why="exited", detail="the index is away") == report.fact
        waits.append(tries[REPLICA].next_at - now)
        now = tries[REPLICA].next_at
    assert [1.0, 4.0, 16.0, 64.0, 256.0, 300.0] == waits[:6]
    assert len(waits) == 13
    (report,) = missing_reports(part(INSTALLING), [host], tries)
    assert run.Failed(epoch=1, reason="the index is away", permanent=False, starts=len(waits) + 1) == report.fact


def test_an_install_that_the_disk_had_no_room_for_waits_for_room_and_not_for_a_time(
    part: Callable[..., OwnPart],
) -> None:
    full = replace(NOT_INSTALLED, end=End(None, "the disk was full", permanent=False, uninstalled=True, room=5_000))
    before = steer(part(), [], {}, 0.0)
    after = steer(part(INSTALLING), [full], before.tries, 0.0)
    stopped = run.Stopped(epoch=1, why="exited", detail="the disk was full")

    def starts(now: float, free: int | None) -> bool:
        return any(isinstance(act, Start) for act in steer(part(stopped), [], after.tries, now, disk_free=free).actions)

    assert [False, False, False] == [starts(0.5, 5_000), starts(1e6, 4_999), starts(1e6, 0)]
    assert [True, True] == [starts(1.0, 5_000), starts(1.0, None)]


def test_what_lacks_something_elsewhere_is_tried_for_as_long_as_it_is_assigned_ever_more_seldom(
    part: Callable[..., OwnPart],
) -> None:
    away = End(1, "it waits for its server", permanent=False, outside=True)
    tries: dict[ReplicaId, Tries] = {}
    now, waits = 0.0, list[float]()
    for number in range(60):
        host = replace(LIVING, incarnation=Incarnation(f"i-{number}"), end=away)
        before = steer(part(), [], tries, now)
        assert any(isinstance(action, Start) for action in before.actions)
        tries = dict(steer(part(LOADING), [host], before.tries, now).tries)
        assert tries[REPLICA].given_up is None
        waits.append(tries[REPLICA].next_at - now)
        now = tries[REPLICA].next_at
    assert [1.0, 4.0, 16.0, 64.0, 256.0, 300.0] == waits[:6]
    assert {300.0} == set(waits[5:])

    # and what goes wrong here then counts as ever
    for number in range(60, 64):
        host = replace(LIVING, incarnation=Incarnation(f"i-{number}"), end=End(1, "crashed", permanent=False))
        before = steer(part(), [], tries, now)
        tries = dict(steer(part(LOADING), [host], before.tries, now).tries)
        now = tries[REPLICA].next_at
    given_up = tries[REPLICA].given_up
    assert given_up is not None
    assert "crashed" == given_up.reason


def test_an_install_that_its_worker_did_not_live_to_see_the_end_of_is_begun_again_without_a_word(
    part: Callable[..., OwnPart],
) -> None:
    own = part(INSTALLING)
    assert (Start(own.assignments[REPLICA], None),) == steer(own, [], {}, 0.0).actions
    assert [] == missing_reports(own, [], {})
    (report,) = missing_reports(own, [], {}, shutdown=True)
    assert isinstance(report.fact, run.Stopped)


def test_what_can_never_be_installed_is_the_runs_failure(part: Callable[..., OwnPart]) -> None:
    never = replace(NOT_INSTALLED, end=End(None, "no such recipe", permanent=True))
    tries = steer(part(INSTALLING), [never], {REPLICA: Tries(1)}, 0.0).tries
    (report,) = missing_reports(part(INSTALLING), [never], tries)
    assert run.Failed(epoch=1, reason="no such recipe", permanent=True, starts=0) == report.fact


def test_a_replica_that_is_retired_while_its_engine_is_installed_is_reported_as_stopped(
    part: Callable[..., OwnPart],
) -> None:
    own = part(INSTALLING, retired=30)
    assert (Retire(ONE, 30),) == steer(own, [BEING_INSTALLED], {}, 0.0).actions
    ended = replace(LIVING, end=End(None, "retired", permanent=False), retire_at=0.0)
    (report,) = missing_reports(own, [ended], {})
    assert run.Stopped(epoch=1, why="retired") == report.fact


def test_a_signal_of_its_worker_is_no_riddle() -> None:
    assert "the engine's process was killed by SIGKILL" == sentence_of(-9, "", "", MemoryKills(1, 1), by_us=True)


def test_the_last_lines_of_a_run_that_ended_unasked_are_told(part: Callable[..., OwnPart]) -> None:
    gone = replace(READY, end=End(1, "it fell", permanent=False, last_lines=("one", "two")))
    stopped = missing_reports(part(LOADING, IS_READY), [gone], {})[0].fact
    assert isinstance(stopped, run.Stopped)
    assert ("one", "two") == stopped.last_lines

    tries = steer(part(LOADING), [replace(gone, end=End(3, "-", permanent=True, last_lines=("no",)))], {}, 0.0).tries
    failed = missing_reports(part(LOADING), [], tries)[0].fact
    assert isinstance(failed, run.Failed)
    assert ("no",) == failed.last_lines


def lived(*seconds: tuple[int, bool, int, bool], bounds: StallBounds) -> list[str]:
    """What is said after each second of (steps, busy, words heard, computes)."""
    pulse, said = Pulse(), list[str]()
    for steps, busy, words, computes in seconds:
        for _ in range(words):
            pulse = heard(pulse, busy=busy, steps=steps)
        pulse = passed(pulse, 1.0, computes=computes)
        said.append(stall_of(pulse, bounds))
    return said


BOUNDS = StallBounds(still_s=5, longest_s=20)
STANDS, MOVES, IDLE, MUTE = (7, True, 1, False), (8, True, 1, False), (7, False, 1, False), (7, False, 0, False)


def test_a_stall_needs_requests_and_a_counter_that_stands_still() -> None:
    assert [""] * 30 == lived(*[IDLE] * 30, bounds=BOUNDS)
    assert [""] * 30 == lived(*[STANDS, STANDS, STANDS, MOVES, MOVES, MOVES] * 5, bounds=BOUNDS)
    assert [""] * 4 == lived(*[STANDS] * 4, bounds=BOUNDS)
    assert "requests ran for 5 s without a step of the engine" == lived(*[STANDS] * 5, bounds=BOUNDS)[-1]
    # and time without requests is no stall of those that come after it
    assert "" == lived(*[IDLE] * 30, *[STANDS] * 4, bounds=BOUNDS)[-1]


def test_a_host_that_says_nothing_stalls_whether_requests_run_or_not() -> None:
    said = lived(IDLE, *[MUTE] * 12, bounds=BOUNDS)
    assert ("", f"its host said nothing for {5 + SILENT_FROM_S - 1:.0f} s") == (said[5], said[6])
    # and one word of it ends that
    assert "" == lived(IDLE, *[MUTE] * 12, IDLE, bounds=BOUNDS)[-1]


def test_an_engine_that_computes_has_longer_for_one_step_but_not_for_ever() -> None:
    computes = (7, True, 1, True)
    assert [""] * 19 == lived(*[computes] * 19, bounds=BOUNDS)
    assert "requests ran for 20 s without a step of the engine" == lived(*[computes] * 20, bounds=BOUNDS)[-1]
    # and what stands still in between counts
    assert "requests ran for 10 s without a step of the engine" == lived(*[computes, STANDS] * 5, bounds=BOUNDS)[-1]


def test_a_stall_is_told_before_it_ends_the_host_and_counts_as_a_crash(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY)
    stalls = replace(READY, stalled="it stands", stalled_at=100.0)

    # when it is said first
    assert () == steer(own, [stalls], {}, 100.0).actions
    assert [run.Degraded(epoch=1, incarnation=ONE, why="it stands")] == [
        report.fact for report in missing_reports(own, [stalls], {})
    ]
    # then ended, hard where it doesn't obey
    assert (Signal(ONE, "TERM", "it stands", at_once=True),) == steer(own, [stalls], {}, 100.0 + MOVE_S).actions
    termed = replace(stalls, term_at=102.0, ended_for="it stands")
    assert [("KILL",)] == [(s.signal,) for s in steer(own, [termed], {}, 107.0).actions if isinstance(s, Signal)]
    # and started again after a while, as after a crash
    gone = replace(termed, end=End(-9, "its worker ended it: it stands", permanent=False))
    steering = steer(own, [gone], {REPLICA: Tries(1, (0.0,), 1)}, 107.0)
    assert () == steering.actions
    assert (ONE, 107.5) == (steering.tries[REPLICA].counted, steering.tries[REPLICA].next_at)


def test_a_stalled_host_that_retires_has_no_more_time(part: Callable[..., OwnPart]) -> None:
    own = part(LOADING, IS_READY, retired=3600)
    stalls = replace(READY, retire_at=0.0, retire_within=3600.0, stalled="it stands", stalled_at=100.0)

    assert (Signal(ONE, "TERM", "it stands", at_once=True),) == steer(own, [stalls], {}, 102.0).actions
