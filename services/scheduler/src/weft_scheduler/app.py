"""The scheduler: one fold of the whole log, one rule, and what gateways say of their demand."""

import time
from collections.abc import Sequence

from prometheus_client import REGISTRY, Gauge
from weft_contracts.commit import Decision, Recorded
from weft_contracts.facts.eviction import ModelUse
from weft_contracts.ids import ModelId
from weft_placement.demand_board import DemandBoard
from weft_runtime.service import Runtime
from weft_runtime.signal_poller import DEMAND, SignalPoller

from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_scheduler.inbound.device_metrics import DeviceMetrics

_WAITING = Gauge("weft_replicas_waiting", "Replicas that are wanted and have no place")
_LEAVING = Gauge("weft_replicas_leaving", "Retired replicas that are still assigned")
_ROOMS = Gauge("weft_replicas_made_room_for", "Replicas without a place for which others end")


async def start(runtime: Runtime, rules: Rules) -> None:
    """Fold, and decide while this instance leads."""
    state = State()
    board = DemandBoard()
    REGISTRY.register(DeviceMetrics(lambda: state.fleet))

    def fold(commits: Sequence[Recorded]) -> None:
        state.fold(commits)
        _WAITING.set(len(state.waiting))
        _LEAVING.set(len(state.fleet.leaving))
        _ROOMS.set(len(state.fleet.rooms))

    projection = runtime.projection("scheduler", fold, state, on_restored=state.on_restored)

    def use(model: ModelId) -> ModelUse:
        return board.use(model, time.monotonic())

    def rule(now: float, seed: int) -> Sequence[Decision]:
        return decide(state, rules, now, seed, projection.suspects, use)

    def look(now: float) -> None:
        board.look(now)
        board.forget_models(but=state.fleet.models)

    await runtime.decide(projection, rule, state.fleet.digest)
    runtime.spawn("demand", SignalPoller(runtime, DEMAND, board.heard, look).run())
