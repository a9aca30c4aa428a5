"""When an engine that holds more memory than it claims is told of."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import psutil
import pytest
from weft_contracts import subjects
from weft_contracts.facts import run
from weft_contracts.facts.node import Assigned
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_testing import HandLog
from weft_worker_agent.domain.claim_use import MARGIN_BYTES, STAYS_S, ClaimUse, looked
from weft_worker_agent.domain.hosts import Answering, Host
from weft_worker_agent.domain.own_part import OwnPart, evolve
from weft_worker_agent.domain.reports import missing_reports
from weft_worker_agent.outbound.machine.memory_use import held_with_children

GIB = 1 << 30
CLAIM = ClaimUse(0, 10 * GIB)
ONE = Incarnation("i-1")
READY = Host(ReplicaId("m-x-1"), 1, ONE, 0.0, answering=Answering(4242, "simulated", "1", ()))
SAID = (
    run.Loading(epoch=1, incarnation=ONE),
    run.Ready(epoch=1, incarnation=ONE, port=4242, engine="simulated", engine_version="1"),
)


def after(use: ClaimUse, *looks: tuple[float, int]) -> ClaimUse:
    for at, held in looks:
        use = looked(use, held, at)
    return use


def test_a_tenth_above_the_claim_is_nothing_and_a_quarter_of_a_gib_neither() -> None:
    assert 0 == after(CLAIM, (0, 11 * GIB), (60, 11 * GIB)).exceeds
    small = ClaimUse(0, 1000)
    assert 0 == after(small, (0, 1000 + MARGIN_BYTES), (60, 1000 + MARGIN_BYTES)).exceeds


def test_more_than_that_is_told_when_it_has_stayed() -> None:
    assert 0 == after(CLAIM, (0, 12 * GIB), (STAYS_S - 0.1, 12 * GIB)).exceeds
    assert 0 == after(CLAIM, (0, 12 * GIB), (5, 10 * GIB), (STAYS_S, 12 * GIB)).exceeds
    told = after(CLAIM, (0, 12 * GIB), (STAYS_S, 13 * GIB))
    assert (13 * GIB, 3 * GIB) == (told.exceeds, told.excess)


def test_it_is_told_again_only_when_it_is_half_as_much_more() -> None:
    told = after(CLAIM, (0, 12 * GIB), (STAYS_S, 12 * GIB))
    assert 12 * GIB == after(told, (20, 18 * GIB), (40, 18 * GIB), (60, 0), (80, 12 * GIB)).exceeds
    assert 19 * GIB == after(told, (20, 19 * GIB), (40, 19 * GIB)).exceeds


@pytest.fixture
def part(hand_log: HandLog, node: NodeId, assigned: Callable[..., Assigned]) -> Callable[..., OwnPart]:
    """What is folded after one assignment and these run facts, and those that were given before."""

    def make(*facts: run.RunFact) -> OwnPart:
        hand_log.given(subjects.node(node), assigned())
        for fact in facts:
            hand_log.given(subjects.run(node, READY.replica), fact)
        return reduce(evolve, hand_log.commits, OwnPart())

    return make


def test_the_log_is_told_once_a_start_also_by_an_agent_that_was_started_again(part: Callable[..., OwnPart]) -> None:
    host = replace(READY, use=replace(CLAIM, exceeds=12 * GIB))
    exceeded = run.Exceeded(epoch=1, incarnation=ONE, device=0, claimed=10 * GIB, used=12 * GIB)
    assert [exceeded] == [report.fact for report in missing_reports(part(*SAID), [host], {})]

    own = part(*SAID, exceeded)
    assert [] == missing_reports(own, [host], {})
    assert [] == missing_reports(own, [replace(host, use=replace(CLAIM, exceeds=13 * GIB))], {})
    # nor after a stall that passed
    own = part(*SAID, exceeded, run.Degraded(epoch=1, incarnation=ONE, why="-"), SAID[1])
    assert [] == missing_reports(own, [host], {})
    # but of the next start
    two = Incarnation("i-2")
    own = part(*SAID, exceeded, run.Stopped(epoch=1, why="exited"), SAID[0].model_copy(update={"incarnation": two}))
    assert 0 == own.runs[READY.replica].exceeded


def test_what_a_host_started_counts_with_it() -> None:
    # given a process that holds memory, and started another one that does
    size = 64 << 20
    program = (
        "import subprocess, sys\n"
        f"held = bytearray({size}); held[::4096] = b'x' * len(held[::4096])\n"
        "if len(sys.argv) > 1: child = subprocess.Popen([sys.executable, '-c', sys.argv[1]])\n"
        "print('x', flush=True)\n"
        "input()"
    )
    command = [sys.executable, "-c", program, program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            for _ in range(2):
                process.stdout.readline()
            # then both are counted
            alone = psutil.Process(process.pid).memory_info()
            assert held_with_children([process.pid])[process.pid] >= size + alone.rss - getattr(alone, "shared", 0)
        finally:
            for child in psutil.Process(process.pid).children():
                child.kill()
            process.kill()
    assert {process.pid: 0} == held_with_children([process.pid])
