"""The reconciler, put together."""

from weft_contracts.commit import Decision
from weft_placement.fleet import digest_of
from weft_runtime.service import Runtime

from weft_reconciler.domain.decide import decide
from weft_reconciler.domain.moment import Attention, Limits
from weft_reconciler.domain.state import State
from weft_reconciler.settings import ReconcilerSettings


async def start(runtime: Runtime) -> None:
    """Fold the whole log and decide from it."""
    settings = runtime.settings
    assert isinstance(settings, ReconcilerSettings)
    state = State()
    attention = Attention(
        Limits(
            deploy_wait=settings.deploy_wait,
            return_grace=settings.lost_grace,
            failure_memory=settings.failure_memory,
        )
    )

    def rule(now: float, seed: int) -> list[Decision]:
        return decide(state, attention.look(now))

    code = ("weft_placement", "weft_reconciler.domain", "weft_reconciler.app")
    projection = runtime.projection("reconciler", state.fold, state, code=code, taken_up=state.taken_up)
    await runtime.decide(projection, rule, lambda: digest_of(state))
