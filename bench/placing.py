"""What a scheduler does with a real log: folds it, and places what was lost.

    python bench/placing.py [--nodes 1000] [--facts 100000] [--lost 1000] [--rounds 2]

Starts a real NATS server (`sync_interval: always`) in a temporary folder. The log tells of nodes of 8 devices with 4
replicas each, of 100 models of different sizes. Then nodes go until so many replicas are lost at once, and as many new
ones are wanted in their place: by one scheduler, and by two that both believe that they lead.
"""

import argparse
import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import psutil
import structlog
from assigned_fleet import assigned_fleet
from prometheus_client import REGISTRY
from weft_contracts.commit import Commit, Recorded
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.model import Scaled
from weft_contracts.facts.node import WentOffline
from weft_contracts.facts.replica import Placed
from weft_contracts.ids import ModelId, NodeId, ReplicaId, replica_id
from weft_contracts.subjects import machine, model, node
from weft_eventlog import EventLog, Projection
from weft_fleet import Fleet
from weft_placement.verify import verify
from weft_runtime.decider import Decider
from weft_runtime.health import Health
from weft_runtime.leadership import Leadership
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog
from weft_testing.mesh_server import MeshServer, running_mesh_server

PATIENCE = 300.0


class Always:
    """It leads, whoever else believes that too."""

    held = True


def told(nodes: int, facts: int) -> FleetLog:
    """What the log tells of so many nodes, in about so many facts."""
    log = assigned_fleet(nodes)
    there, ids = sum(len(each.facts) for each in log.commits), tuple(log.fleet.nodes)
    for number in range(max(facts - there, 0)):
        log.add(machine(ids[number % nodes]), PressureChanged(device=number % 8, bytes=number % 97 << 20))
    return log


def lost(fleet: Fleet, count: int) -> list[Commit]:
    """Nodes go until so many replicas are lost, and as many others are wanted."""
    gone: list[ReplicaId] = []
    commits: list[Commit] = []
    cause = next(iter(fleet.replicas.values())).cause
    for id in fleet.nodes:
        if len(gone) >= count:
            break
        gone += fleet.replicas_on(id)
        commits.append(Commit(node(id), (WentOffline(silent_for=30),), None, cause))
    for id, view in fleet.models.items():
        mine = tuple(each for each in gone if fleet.replicas[each].model == id)
        numbers = range(view.next_number, view.next_number + len(mine))
        add = tuple(replica_id(id, number) for number in numbers)
        if mine:
            commits.append(
                Commit(model(ModelId(id)), (Scaled(revision=1, add=add, retire=mine, why="lost"),), None, cause)
            )
    return commits


class Scheduler:
    """One, as the service runs it, but for who leads."""

    def __init__(self, mesh: MeshServer, number: int) -> None:
        self._mesh, self._number = mesh, number
        self.state = State()

    async def start(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Until it has caught up."""
        log = EventLog(await self._mesh.root(), actor=f"scheduler-{self._number}")
        self.projection = Projection(log, name=f"scheduler-{self._number}", fold=self.state.fold)
        running = tasks.create_task(self.projection.run())
        await asyncio.wait_for(self.projection.caught_up.wait(), PATIENCE)

        def rule(now: float, seed: int):
            return decide(self.state, Rules(), now, seed, self.projection.suspects)

        decider = Decider(log, self.projection, cast("Leadership", Always()), Health(), rule)
        return [running, tasks.create_task(decider.run())]


def counted(name: str) -> float:
    """A counter of this process."""
    return REGISTRY.get_sample_value(name) or 0.0


def load() -> str:
    """The machine's, over the last minute."""
    return f"load {os.getloadavg()[0]:.1f}"


async def placing(nodes: int, facts: int, count: int, schedulers: int) -> None:
    """Place what is lost, and compute every decision again."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        async with running_mesh_server(Path(folder)) as mesh, asyncio.TaskGroup() as tasks:
            log, server = EventLog(await mesh.root(), actor="bench"), psutil.Process(mesh.server.pid)
            history = told(nodes, facts)
            await put(log, [Commit(each.aggregate, each.facts, None, each.cause) for each in history.commits])
            own, wall = time.process_time(), time.perf_counter()
            those = [Scheduler(mesh, number) for number in range(schedulers)]
            running = [await each.start(tasks) for each in those]
            own, wall = time.process_time() - own, time.perf_counter() - wall
            told_facts = sum(len(each.facts) for each in history.commits)
            if schedulers == 1 and facts:
                print(f"{told_facts} facts folded from the log: {own:.2f} s of CPU, {wall:.2f} s; {load()}", flush=True)
            commits = lost(those[0].state.fleet, count)
            added = {id for each in commits for fact in each.facts if isinstance(fact, Scaled) for id in fact.add}
            before, beats = counted("weft_decisions_lost_total"), counted("weft_decisions_appended_total")
            own, theirs, wall = time.process_time(), sum(server.cpu_times()[:2]), time.perf_counter()
            await put(log, commits)
            async with asyncio.timeout(PATIENCE):
                while not all(placed(each.state.fleet, added) for each in those):
                    await asyncio.sleep(0.02)
            wall, own, theirs = (
                time.perf_counter() - wall,
                time.process_time() - own,
                sum(server.cpu_times()[:2]) - theirs,
            )
            for each in (task for pair in running for task in pair):
                each.cancel()
            beaten = counted("weft_decisions_lost_total") - before
            taken = counted("weft_decisions_appended_total") - beats
            print(
                f"{len(added)} replicas lost on {nodes} nodes, {schedulers} scheduler(s): placed and committed in"
                f" {wall:.2f} s, {own:.2f} s of CPU, NATS {theirs:.2f} s; {taken:.0f} batches, {beaten:.0f} lost to the"
                f" other; {load()}",
                flush=True,
            )
            records = [each async for each in log.read()]
    overcommitted(records)
    found = verify(each for each in records if each.actor != "bench" or not isinstance(each.facts[0], Placed))
    print(f"computed again: {dict(found.decisions)}, {len(found.mismatches)} otherwise", flush=True)


def placed(fleet: Fleet, ids: set[ReplicaId]) -> bool:
    """Whether all of them are."""
    return all((view := fleet.replicas.get(id)) is not None and view.placed is not None for id in ids)


def overcommitted(records: Sequence[Recorded]) -> None:
    """Fail where a device holds more than it has."""
    fleet = Fleet()
    for each in records:
        fleet.apply(each)
    for id, view in fleet.nodes.items():
        assert view.hardware is not None
        for device in view.hardware.devices:
            assert fleet.claims(NodeId(id)).get(device.index, 0) <= device.memory, id


async def put(log: EventLog, commits: Sequence[Commit]) -> None:
    """Append in batches."""
    for first in range(0, len(commits), 500):
        await log.append(*commits[first : first + 500])


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--lost", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    for _ in range(given.rounds):
        for schedulers in (1, 2):
            asyncio.run(placing(given.nodes, given.facts, given.lost, schedulers))


if __name__ == "__main__":
    main()
