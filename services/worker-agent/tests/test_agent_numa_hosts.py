"""Real engine hosts under a real supervisor, on a machine whose NUMA nodes are made up: where each of them runs."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from weft_contracts.commit import Cause
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.values import Device, DeviceClaim, Hardware, Member
from weft_contracts.ids import CorrelationId
from weft_contracts.processors import as_list
from weft_worker_agent.domain.hosts import Host
from weft_worker_agent.domain.own_part import Assignment
from weft_worker_agent.domain.steering import Start
from weft_worker_agent.outbound.machine.numa_nodes import numa_nodes
from weft_worker_agent.outbound.processes.host_entry import HostContext
from weft_worker_agent.outbound.processes.host_starts import HostStarts
from weft_worker_agent.outbound.processes.hosts import Hosts
from weft_worker_agent.outbound.processes.numa_choice import NumaChoice

from .conftest import NODE
from .test_agent_numa import file, machine
from .test_supervisor_processes import AGENT, RunningSupervisor

GIB = 1 << 30
ADDRESS = "0000:03:00.0"
CARD = Device(index=4, vendor="amd", name="a", memory=GIB, uuid="GPU-a", number=0, pci=ADDRESS)
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system binds no process")
MakeHosts = Callable[[], Hosts]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A system of two nodes, with the first and the last processor of this process, and a card at the second."""
    mine = sorted(os.sched_getaffinity(0))
    root = machine(tmp_path / "root", (f"{mine[0]},4000-4003", 64), (f"{mine[-1]},4004-4007", 64))
    return file(root, f"sys/bus/pci/devices/{ADDRESS}/numa_node", "1\n")


@pytest.fixture
async def agents(tmp_path: Path, root: Path, process_env: dict[str, str]) -> AsyncIterator[MakeHosts]:
    """Makes what an agent knows of its hosts, as often as one is started over one supervisor."""
    (tmp_path / "worker").mkdir()
    supervisor = RunningSupervisor(tmp_path / "worker" / "state", process_env, AGENT)
    await supervisor.ready()
    made: list[Hosts] = []

    def make() -> Hosts:
        context = HostContext(NODE, "127.0.0.1", None, time.monotonic, lambda: None)
        numa = NumaChoice(NODE, numa_nodes(1, root), 1, root)
        launches = tmp_path / "launch"
        made.append(Hosts(HostStarts(context, supervisor.client, launches=launches, python=sys.executable, numa=numa)))
        return made[-1]

    yield make
    for hosts in made:
        await hosts.close()
    children = supervisor.children()
    supervisor.client.close()
    supervisor.process.kill()
    supervisor.process.wait(30)
    for child in children:
        child.wait(30)


def start(fact: Assigned, **claims: int) -> Start:
    """Of a replica that claims these bytes of devices, by index."""
    devices = tuple(DeviceClaim(index=int(index[1:]), bytes=size) for index, size in claims.items())
    fact = fact.model_copy(update={"members": (Member(node=NODE, rank=0, devices=devices),)})
    processor = Device(index=0, vendor="cpu", name="-", memory=128 * GIB)
    hardware = Hardware(cpus=4, memory=128 * GIB, devices=(processor, CARD))
    reported = Reported(hardware=hardware, backends=(), builtins=(), agent_version="0")
    return Start(Assignment(fact, Cause(CorrelationId("c-1"))), reported)


async def running(hosts: Hosts, replica: str) -> Host:
    """The host of a replica, once it answers."""
    async with asyncio.timeout(60):
        while True:
            await hosts.refresh()
            for host in hosts.view():
                assert host.end is None, host.end
                if host.replica == replica and host.answering is not None:
                    return host
            await asyncio.sleep(0.05)


async def test_replicas_spread_over_the_nodes_by_their_claims_also_when_the_agent_is_started_anew(
    agents: MakeHosts, assigned: Callable[..., Assigned], root: Path, tmp_path: Path
) -> None:
    nodes = {node.index: node for node in numa_nodes(1, root)}
    # given two replicas on the processor
    first = agents()
    await first.do(start(assigned("m-x-1"), _0=8 * GIB))
    await running(first, "m-x-1")
    await first.do(start(assigned("m-x-2"), _0=2 * GIB))
    await running(first, "m-x-2")
    # when an agent that comes after this one starts a third
    second = agents()
    await second.refresh()
    await second.do(start(assigned("m-x-3"), _0=GIB))
    await running(second, "m-x-3")
    # then it runs beside the smaller one, each on its node's processors alone
    at: dict[str, int] = {}
    for replica, pid in second.answering():
        told = json.loads((tmp_path / "launch" / f"{replica}.json").read_text())["numa"]
        at[replica] = told["node"]
        assert as_list(nodes[told["node"]].processors) == told["processors"]
        assert nodes[told["node"]].processors == os.sched_getaffinity(pid)
        log = (tmp_path / f"worker/state/logs/host-{replica}.log").read_text()
        assert "bound to a NUMA node" in log
    assert {0, 1} == {at["m-x-1"], at["m-x-2"]}
    assert at["m-x-2"] == at["m-x-3"]


async def test_a_replica_on_an_accelerator_runs_at_its_node_and_one_that_fits_nowhere_wherever_it_may(
    agents: MakeHosts, assigned: Callable[..., Assigned], root: Path, tmp_path: Path
) -> None:
    second = next(node for node in numa_nodes(1, root) if node.index == 1)
    hosts = agents()
    await hosts.do(start(assigned("m-x-1"), _0=100 * GIB))
    await hosts.do(start(assigned("m-x-2"), _4=GIB))
    await running(hosts, "m-x-1")
    await running(hosts, "m-x-2")

    pids = dict(hosts.answering())
    launches = {replica: json.loads((tmp_path / "launch" / f"{replica}.json").read_text()) for replica in pids}
    assert ["m-x-1"] == [replica for replica, told in launches.items() if "numa" not in told]
    by_name = {str(replica): pid for replica, pid in pids.items()}
    assert os.sched_getaffinity(0) == os.sched_getaffinity(by_name["m-x-1"])
    assert second.processors == os.sched_getaffinity(by_name["m-x-2"])
    assert 1 == next(told for replica, told in launches.items() if replica == "m-x-2")["numa"]["node"]
