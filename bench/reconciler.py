"""What one look of the reconciler costs at 1,000 nodes while nothing is to be done, in CPU time.

    python bench/reconciler.py [--nodes 1000] [--models 50] [--rounds 200]

It looks after each batch of commits that it has folded, and once a second.
"""

import argparse
import statistics
import time
from collections.abc import Callable

from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.source import BuiltinSource
from weft_contracts.facts.values import ModelSpec
from weft_reconciler.domain.answer_deploy import by_engine, inspected
from weft_reconciler.domain.decide import decide
from weft_reconciler.domain.decision_time import DecisionClock, DecisionTime
from weft_reconciler.domain.request_inspections import request_inspections
from weft_reconciler.domain.state import State
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30


def cpu(work: Callable[[], object], rounds: int) -> str:
    """Median and worst CPU time of `work`, for people."""
    taken: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return f"{statistics.median(taken) * 1000:9.3f} ms  (worst {max(taken) * 1000:9.3f} ms)"


def filled(nodes: int, models: int) -> State:
    """So many nodes, each asked for every model's files: nobody wants a replica."""
    log, state = FleetLog(), State()
    log.listen(state.apply)
    for index in range(nodes):
        log.node(f"w{index:04}", *[80 * GIB] * 8)
    for index in range(models):
        source = BuiltinSource(name=f"b{index:03}")
        log.model(f"m{index:03}", ModelSpec(source=source, engine="llama.cpp", min_replicas=0, max_replicas=0))
    for decision in request_inspections(state, (), DecisionTime(0.0, 0.0)):
        for commit in decision.commits:
            assert all(isinstance(fact, Requested) for fact in commit.facts)
            log.add(commit.aggregate, *commit.facts)
    return state


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    state, clock = filled(given.nodes, given.models), DecisionClock()
    assert [] == decide(state, clock.tick(1.0))
    print(f"{given.nodes} nodes with three engines, {given.models} models whose files all of them were asked for")
    known, now = (state.fleet.engines, state.fleet.recipes), clock.tick(1.0)
    print("the table of nodes by engine ", cpu(lambda: by_engine(inspected(state), *known), given.rounds))
    print("which inspections are missing", cpu(lambda: request_inspections(state, (), now), given.rounds))
    print("a look in all                ", cpu(lambda: decide(state, clock.tick(1.0)), given.rounds))


if __name__ == "__main__":
    main()
