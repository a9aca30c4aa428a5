"""The reconciler, put together."""

from prometheus_client import REGISTRY
from weft_contracts.commit import Decision
from weft_fleet import digest_of
from weft_placement.demand_board import DemandBoard
from weft_runtime.service import Runtime
from weft_runtime.signal_poller import DEMAND, SignalPoller

from weft_reconciler.domain.decide import decide
from weft_reconciler.domain.decision_time import DecisionClock, Timeouts
from weft_reconciler.domain.demand_watch import DemandWatch
from weft_reconciler.domain.sizing import Demand
from weft_reconciler.domain.state import State
from weft_reconciler.inbound.demand_metrics import DemandMetrics
from weft_reconciler.inbound.model_metrics import ModelMetrics
from weft_reconciler.settings import ReconcilerSettings


async def start(runtime: Runtime) -> None:
    """Fold the whole log and decide from it."""
    settings = runtime.settings
    assert isinstance(settings, ReconcilerSettings)
    state = State()
    policy = settings.scaling
    watch = DemandWatch(DemandBoard(policy))
    REGISTRY.register(ModelMetrics(lambda: state.fleet))
    REGISTRY.register(DemandMetrics(lambda: state.fleet, watch))
    clock = DecisionClock(
        Timeouts(
            deploy_wait=settings.deploy_wait,
            return_grace=settings.lost_grace,
            failure_memory=settings.failure_memory,
        )
    )

    def rule(now: float, seed: int) -> list[Decision]:
        return decide(state, clock.tick(now, seed), Demand(policy, watch.near, watch.seen))

    projection = runtime.projection("reconciler", state.fold, state, on_restored=state.on_restored)
    await runtime.decide(projection, rule, lambda: digest_of(state))
    runtime.spawn("demand", SignalPoller(runtime, DEMAND, watch.board.heard, lambda now: watch.look(state, now)).run())
