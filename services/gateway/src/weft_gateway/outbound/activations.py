"""Asks for the first replica of models that sleep, for requests that wait for them."""

import asyncio
import time
from typing import Any

from weft_contracts.facts.request import ActivationRequested
from weft_contracts.ids import ModelId
from weft_runtime.logs import get_logger

from weft_gateway.domain.refused import Refused
from weft_gateway.outbound.changes import Changes, id_for

EVERY_S = 5.0
"""Between two askings for a model."""
MOST_AT_ONCE = 64
"""Askings on their way; who waits for another model asks again a second later."""
_log: Any = get_logger("weft.gateway.activations")


class Activations:
    """However many requests wait for a model: it is asked for once, and again after a while if nothing came of it."""

    def __init__(self, changes: Changes, actor: str) -> None:
        self._changes = changes
        self._actor = actor
        self._asked: dict[ModelId, float] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def ask(self, model: ModelId, correlation_id: str) -> None:
        """`correlation_id`: of the request that waits."""
        now = time.monotonic()
        for old in [id for id, at in self._asked.items() if now - at >= EVERY_S]:
            del self._asked[old]
        if model in self._asked or len(self._asking) >= MOST_AT_ONCE:
            return
        self._asked[model] = now
        task = asyncio.create_task(self._ask(model, correlation_id))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, model: ModelId, correlation_id: str) -> None:
        asked = ActivationRequested(model=model)
        try:
            await self._changes.ask(id_for(self._actor, asked.type, None), asked, correlation_id, actor=self._actor)
        except Refused as refused:
            _log.warning("not asked for", model=model, correlation_id=correlation_id, why=refused.sentence)
