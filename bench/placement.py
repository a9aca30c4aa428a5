"""What one placement costs, in CPU time: each for a new model on a changed state, with its receipt; the least and the
median of several, since others' work beside it makes the same work take longer.

    python bench/placement.py [--nodes 100 1000 10000] [--rounds 20] [--from-nothing 10000]

Nodes of 8 devices with 4 replicas each, of 100 models of different sizes. Side by side: from the index, as a scheduler
decides for a model that it didn't rank before; with every node asked, as anybody computes it again; and on a ranking
kept in step. `--from-nothing`: so many replicas of 100 models placed by the scheduler's rule, on as many nodes as the
second of `--nodes` says, or the first.

GPUStack's `find_candidate` takes 4.3 s (spread) and 16.1 s (binpack) for one decision at 1,000 nodes × 8
devices with 4,000 instances, database stubbed.
"""

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from assigned_fleet import GIB, MODELS, SPEC, assigned_fleet, idle_fleet
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.source import BuiltinSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_contracts.ids import ReplicaId
from weft_contracts.subjects import machine
from weft_eventlog.projection import COLLECTED_AFTER
from weft_eventlog.snapshots.packing import Packer
from weft_eventlog.snapshots.shape import Shape
from weft_fleet import Fleet, ReplicaView
from weft_placement import (
    BALANCED,
    BUILTIN_POLICIES,
    CandidateRanking,
    Circumstances,
    Placement,
    PlannedFleet,
    Policy,
    choose,
)
from weft_placement.claim import Need
from weft_placement.decide import demand_for
from weft_placement.demand import Demand, demand_of
from weft_placement.node_index import NodeIndex
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State

GIVEN = Circumstances(1.0, 1)
WEIGHTS = Weights(
    format="safetensors", weight_bytes=120 * GIB, kv_bytes_per_token=1 << 17, layers=80, heads=64, kv_heads=8
)
LARGE = ModelSpec(source=BuiltinSource(name="tiny"), engine="vllm", weights=WEIGHTS, context_tokens=8192)
"""No one device holds it."""


class Bench:
    """A fleet with 4 replicas a node."""

    def __init__(self, nodes: int) -> None:
        self.log, self.index, self._made = assigned_fleet(nodes), NodeIndex(), 0
        self.ids = tuple(self.log.fleet.nodes)
        self.index.follow(self.log.fleet)

    def new(self, spec: ModelSpec) -> ReplicaView:
        """A replica of a model that was not there, after one node has changed."""
        self._made += 1
        id = self.ids[self._made * 7 % len(self.ids)]
        self.log.add(machine(id), PressureChanged(device=0, bytes=self._made << 20))
        model = self.log.model(f"new{self._made}", spec, replicas=1)
        return self.log.fleet.replicas[ReplicaId(f"{model}-1")]

    def decided(self, replica: ReplicaView, demand: Callable[[], Demand], policy: Policy, *, quick: bool) -> None:
        """One decision with its receipt, of a ranking that was not there."""
        ranking = CandidateRanking(demand(), policy)
        ranking.sync(PlannedFleet(self.log.fleet, self.index if quick else None))
        self.placed(replica, ranking)

    def placed(self, replica: ReplicaView, ranking: CandidateRanking) -> None:
        """Decide; there must be a place."""
        outcome = choose(self.log.fleet, replica, ranking, GIVEN)
        if not isinstance(outcome, Placement):
            raise SystemExit(f"{replica.id} found no place: {outcome.reason}")

    def row(self, what: str, spec: ModelSpec, policy: Policy, rounds: int, group: Need | None = None) -> None:
        """The three ways, side by side."""
        quick, plain, step = list[float](), list[float](), list[float]()

        def demanded(replica: ReplicaView) -> Demand:
            if group is None:
                return demand_for(self.log.fleet, replica, policy)
            made = demand_of(replica.model, 1, spec, policy, BUILTIN, {}, group)
            return replace(made, devices=8, stages=16, groups=True)

        kept: tuple[CandidateRanking, ReplicaView] | None = None
        for number in range(rounds):
            replica = self.new(spec)
            quick.append(cpu(lambda r=replica: self.decided(r, lambda: demanded(r), policy, quick=True)))
            if number < max(rounds // 10, 1):
                plain.append(cpu(lambda r=replica: self.decided(r, lambda: demanded(r), policy, quick=False)))
            if kept is None:
                ranking = CandidateRanking(demanded(replica), policy)
                ranking.sync(PlannedFleet(self.log.fleet))
                kept = (ranking, replica)
                continue

            def in_step(kept: tuple[CandidateRanking, ReplicaView] = kept) -> None:
                kept[0].sync(PlannedFleet(self.log.fleet))
                self.placed(kept[1], kept[0])

            step.append(cpu(in_step))
        each = " | ".join(
            f"{min(those) * 1e3:.2f} ({statistics.median(those) * 1e3:.2f})" for those in (quick, plain, step)
        )
        print(f"| {what} | {each} | {min(plain) / min(quick):.0f} |", flush=True)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of `work`."""
    start = time.process_time()
    work()
    return time.process_time() - start


def table(nodes: int, rounds: int) -> None:
    """Print what decisions cost on so many nodes."""
    bench = Bench(nodes)
    there, load = len(bench.log.fleet.replicas), os.getloadavg()[0]
    print(f"\n{nodes} nodes × 8 devices, {there} replicas; load {load:.1f}. Milliseconds of CPU, the least (median)\n")
    print(
        "| a decision with its receipt | from the index | every node asked | kept in step | times less by the index |"
    )
    print("|---|---|---|---|---|", flush=True)
    for policy in BUILTIN_POLICIES.values():
        bench.row(f"one device, {policy.name}", SPEC, policy, rounds)
    for policy in BUILTIN_POLICIES.values():
        bench.row(f"several devices, {policy.name}", LARGE, policy, max(rounds // 2, 2))
    if nodes >= 100:
        need = Need(16 * 8 * 40 * GIB, 0, 0, place="accelerator")
        spec = LARGE.model_copy(update={"weights": WEIGHTS.model_copy(update={"kv_heads": 64})})
        bench.row("a group of 16 nodes × 8 devices, balanced", spec, BALANCED, max(rounds // 3, 3), need)
    changed = list[float]()
    for _ in range(rounds):
        bench.new(SPEC)
        changed.append(cpu(lambda: bench.index.follow(bench.log.fleet)))
    print(f"\nthe index after one node's change: {statistics.median(changed) * 1e3:.3f} ms", end="; ")
    print(f"made anew: {cpu(lambda: NodeIndex().follow(bench.log.fleet)) * 1e3:.0f} ms")
    snapshots(bench.log.fleet)


def snapshots(fleet: Fleet) -> None:
    """What a snapshot of the fleet costs to take and to load."""
    shape, packer, empty = Shape(Fleet), Packer(), Fleet()
    copied = cpu(lambda: shape.copied(fleet))
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

    def load() -> None:
        reader = shape.reader()
        for line in lines:
            reader.take(line)
        shape.fill(empty, reader.content())

    loaded = cpu(load)
    print(
        f"its snapshot: the copy {copied * 1e3:.0f} ms, {len(slices)} slices of {max(slices) * 1e3:.1f} ms at most and"
        f" {sum(slices):.1f} s in all, {packer.unpacked:,} bytes, packed {size:,}; loading it {loaded:.1f} s",
        flush=True,
    )
    assert empty == fleet


def from_nothing(nodes: int, replicas: int) -> None:
    """Place them all by the scheduler's rule, 32 at a time."""
    log, state = idle_fleet(nodes), State()
    for index in range(MODELS):
        log.model(f"m{index:03}", SPEC, replicas=replicas // MODELS)
    state.fold(log.commits)
    folded, now, spent = len(log.commits), 0.0, 0.0
    while len(state.waiting):
        before = time.process_time()
        decisions = decide(state, Rules(), now, seed=1)
        spent += time.process_time() - before
        if not decisions:
            raise SystemExit(f"{len(state.waiting)} replicas found no place: fewer replicas, or more nodes")
        for decision in decisions:
            log.take([decision])
        state.fold(log.commits[folded:])
        folded = len(log.commits)
        now += 1
    print(f"\nplacing {replicas} on {nodes} nodes from nothing, batches of 32: {spent / replicas * 1e3:.2f} ms each")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--from-nothing", type=int, default=0)
    given = parser.parse_args()
    gc.set_threshold(*COLLECTED_AFTER)  # as in a service
    for nodes in given.nodes:
        table(nodes, given.rounds)
    if given.from_nothing:
        from_nothing(given.nodes[1 if len(given.nodes) > 1 else 0], given.from_nothing)


if __name__ == "__main__":
    main()
