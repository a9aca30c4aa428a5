"""The scheduler: one fold of the whole log, one rule."""

from collections.abc import Sequence

from prometheus_client import REGISTRY, Gauge
from weft_contracts.commit import Decision, Recorded
from weft_runtime.service import Runtime

from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_scheduler.inbound.device_metrics import DeviceMetrics

_WAITING = Gauge("weft_replicas_waiting", "Replicas that are wanted and have no place")
_LEAVING = Gauge("weft_replicas_leaving", "Retired replicas that are still assigned")


async def start(runtime: Runtime, rules: Rules) -> None:
    """Fold, and decide while this instance leads."""
    state = State(rules.policy)
    REGISTRY.register(DeviceMetrics(lambda: state.fleet))

    def fold(commits: Sequence[Recorded]) -> None:
        state.fold(commits)
        _WAITING.set(len(state.waiting))
        _LEAVING.set(len(state.fleet.leaving))

    projection = runtime.projection("scheduler", fold, state, on_restored=state.on_restored)

    def rule(now: float, seed: int) -> Sequence[Decision]:
        return decide(state, rules, now, seed, projection.suspects)

    await runtime.decide(projection, rule, state.fleet.digest)
