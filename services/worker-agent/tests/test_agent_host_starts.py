"""A host that can't begin ends with a reason, whatever the fault is."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from weft_contracts.commit import Cause
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import Device, Hardware
from weft_contracts.ids import CorrelationId, Incarnation
from weft_worker_agent.domain.hosts import Host
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.domain.steering import Start
from weft_worker_agent.outbound.processes.host_entry import HostContext, HostEntry
from weft_worker_agent.outbound.processes.host_starts import HostStarts
from weft_worker_agent.outbound.processes.launch import LaunchIdentity
from weft_worker_agent.outbound.processes.supervisor_client import SupervisorClient

from .conftest import NODE

INCARNATION = Incarnation("i-1")


async def test_a_fault_that_nobody_thought_of_ends_the_replica_with_a_reason(
    tmp_path: Path, assigned: Callable[..., Assigned]
) -> None:
    # given a replica whose start meets such a fault
    def faulty() -> set[int]:
        raise TypeError("of a strange file")

    woken: list[int] = []
    context = HostContext(NODE, "127.0.0.1", None, time.monotonic, lambda: woken.append(1))
    supervisor = SupervisorClient(tmp_path / "none.sock")
    starts = HostStarts(context, supervisor, launches=tmp_path, python=sys.executable)
    fact = assigned()
    device = Device(index=0, vendor="cpu", name="-", memory=1 << 30)
    reported = Reported(
        hardware=Hardware(cpus=1, memory=1 << 30, devices=(device,)), backends=(), builtins=(), agent_version="0"
    )
    identity = LaunchIdentity(fact.replica, 1, INCARNATION, "simulated:", "simulated")
    entry = HostEntry(Host(fact.replica, 1, INCARNATION, 0.0), identity, context)
    # when it begins
    start = Start(Assignment(fact, Cause(CorrelationId("c-1"))), reported)
    await starts.begin(entry, start, faulty, list)
    # then it has ended, and may be tried again
    end = entry.host.end
    assert end is not None
    assert "the engine could not be started: an unexpected fault on this node (TypeError)" in end.reason
    assert not end.permanent
    assert woken
    supervisor.close()
