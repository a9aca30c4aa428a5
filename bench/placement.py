"""What one placement costs at 1,000 nodes × 8 devices with 10,000 replicas, in CPU time.

    python bench/placement.py [--nodes 1000] [--replicas 10000] [--rounds 20]

GPUStack's `find_candidate` takes 4.3 s (spread) and 16.1 s (binpack) for one decision at 1,000 nodes × 8
devices with 4,000 instances, database stubbed.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from typing import Literal

from weft_contracts.commit import Cause
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import CorrelationId, ReplicaId
from weft_eventlog.projection import COLLECTED_AFTER
from weft_eventlog.snapshots.packing import Packer
from weft_eventlog.snapshots.shape import Shape
from weft_fleet import Fleet, ReplicaView
from weft_placement import CandidateRanking, Circumstances, Placement, PlannedFleet, Policy, choose, decide_placement
from weft_placement.decide import demand_for
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog, refold

GIB = 1 << 30
MODELS = 100


def spec(strategy: Literal["binpack", "spread"]) -> ModelSpec:
    """A model of 4 GiB."""
    return ModelSpec(
        source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 4 * GIB}, strategy=strategy
    )


def cpu(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and worst CPU seconds of `work`."""
    taken: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken), max(taken)


def show(what: str, figures: tuple[float, float]) -> None:
    """One line of the table, in milliseconds."""
    median, worst = figures
    print(f"{what:58} {median * 1000:9.3f} ms  (worst {worst * 1000:9.3f} ms)")


def filled(nodes: int, replicas: int) -> tuple[FleetLog, float]:
    """A log of so many nodes and placed replicas, and the CPU seconds of one placement, decided 32 at a time."""
    log = FleetLog()
    state = State(Policy())
    for index in range(nodes):
        log.node(f"w{index:04}", *[80 * GIB] * 8, labels={"host": f"w{index:04}", "zone": f"{index % 10}"})
    for index in range(MODELS):
        log.model(f"m{index:03}", spec("binpack"), replicas=replicas // MODELS)
    state.fold(log.commits)
    folded = len(log.commits)
    start, now = time.process_time(), 0.0
    rounds = Rules()
    spent = 0.0
    while len(state.waiting):
        before = time.process_time()
        decisions = decide(state, rounds, now, seed=1)
        spent += time.process_time() - before
        if not decisions:
            raise SystemExit(f"{len(state.waiting)} replicas found no place: fewer replicas, or more nodes")
        for decision in decisions:
            log.take([decision])
        state.fold(log.commits[folded:])
        folded = len(log.commits)
        now += 1
    print(f"filled in {time.process_time() - start:.1f} CPU s with the fold of {folded} commits, twice")
    return log, spent / replicas


def snapshots(fleet: Fleet) -> None:
    """What a snapshot of the fleet costs to take and to load."""
    gc.set_threshold(*COLLECTED_AFTER)  # as in a service
    shape, packer, empty = Shape(Fleet), Packer(), Fleet()
    show("snapshot: the copy, while the fold stands still", cpu(lambda: shape.copied(fleet), 5))
    slices: list[float] = []
    lines: list[bytes] = []
    taken = shape.slices(shape.copied(fleet))
    while True:
        start = time.process_time()
        line = next(taken, None)
        if line is None:
            break
        packer.add(line)
        slices.append(time.process_time() - start)
        lines.append(line)
    size = sum(map(len, packer.pieces()))
    show(f"snapshot: {len(slices)} slices, {packer.unpacked:,} bytes, packed {size:,}", (sum(slices), max(slices)))

    def load() -> None:
        reader = shape.reader()
        for line in lines:
            reader.take(line)
        shape.fill(empty, reader.content())

    show("snapshot: loading it", cpu(load, 3))
    assert empty == fleet


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    log, each = filled(given.nodes, given.replicas)
    print(f"{given.nodes} nodes × 8 devices, {given.replicas} replicas placed")
    show(f"placing all {given.replicas}, batches of 32: each", (each, each))
    policy = Policy()
    circumstances = Circumstances(policy, 1.0, 1)
    for strategy in ("binpack", "spread"):
        model = log.model(f"new-{strategy}", spec(strategy), replicas=1)
        id = ReplicaId(f"{model}-1")
        view = log.fleet.replicas[id]
        show(
            f"one decision, every node asked anew ({strategy})",
            cpu(lambda id=id: decide_placement(log.fleet, id, policy, 1.0, 1), given.rounds),
        )
        ranking = CandidateRanking(demand_for(log.fleet, view, policy), policy)
        ranking.sync(PlannedFleet(log.fleet))
        cause = Cause(CorrelationId("bench"))
        planned = PlannedFleet(log.fleet)

        def warm(
            ranking: CandidateRanking = ranking,
            view: ReplicaView = view,
            planned: PlannedFleet = planned,
            cause: Cause = cause,
        ) -> None:  # pyright: ignore
            ranking.sync(planned)
            outcome = choose(log.fleet, view, ranking, circumstances)  # pyright: ignore
            assert isinstance(outcome, Placement)
            planned.plan(view, outcome.members, cause)  # pyright: ignore

        show(
            f"one decision on a ranking kept in step ({strategy})", cpu(warm, min(given.rounds * 10, given.nodes // 2))
        )
    start = time.process_time()
    fleet = refold(log.commits)
    took = time.process_time() - start
    facts = sum(len(r.facts) for r in log.commits) + given.replicas  # a `scaled` adds many replicas at once
    print(f"{'folding the log anew, each of ' + str(facts) + ' facts':58} {took / facts * 1e6:9.1f} µs")
    snapshots(fleet)
    start = time.process_time()
    digest = fleet.digest()
    print(f"{'digest of the whole fleet':58} {time.process_time() - start:9.2f} s   ({digest[:16]})")


if __name__ == "__main__":
    main()
