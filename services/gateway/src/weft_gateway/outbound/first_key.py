"""The first admin key: made elsewhere, given to gateways by its hash, recorded once by the gateway that comes first."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from weft_contracts.api_key import key_id, parse_first_key
from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.facts.key import Created
from weft_contracts.ids import CorrelationId, KeyId
from weft_contracts.subjects import api_key
from weft_eventlog import Conflict, EventLog, LogUnavailable, Projection
from weft_eventlog.errors import LogFull
from weft_runtime.health import Health
from weft_runtime.logs import get_logger

from weft_gateway.domain.keys import KeyView

_log: Any = get_logger("weft.gateway.keys")
_PAUSE = 1.0
_LONGEST_PAUSE = 10.0


class FirstKey:
    """Until the key is in the log, this gateway is not ready: no admin could call it. A revoked one stays revoked."""

    def __init__(
        self,
        told: str,
        keys: Mapping[KeyId, KeyView],
        projection: Projection,
        log: EventLog,
        health: Health,
    ) -> None:
        self._prefix, self._hash = parse_first_key(told)
        self._id = key_id(self._hash)
        self._keys = keys
        self._projection = projection
        self._log = log
        self._health = health
        health.set_ready("first key", False)

    @property
    def known(self) -> bool:
        """Whether the fold has it."""
        return self._id in self._keys

    async def run(self) -> None:
        """See to it that the key is recorded; then there is nothing to do, for ever."""
        await self._projection.caught_up.wait()
        pause = _PAUSE
        while not self.known:
            try:
                await self._record()
            except (LogUnavailable, LogFull) as error:
                self._health.set("first key", f"it is not recorded yet: {error}")
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                await self._projection.moved(timeout=_PAUSE)
        self._health.set("first key", None)
        self._health.set_ready("first key", True)
        await asyncio.Event().wait()

    async def _record(self) -> None:
        aggregate = api_key(self._id)
        fact = Created(hash=self._hash, prefix=self._prefix, scopes=("admin",))
        cause = Cause(CorrelationId("first-key"))
        try:
            await self._log.append(Commit(aggregate, (fact,), Guard(aggregate, 0), cause), timeout=5.0)
        except Conflict:
            return  # another gateway was told the same
        _log.info("first key recorded", key=self._id, prefix=self._prefix)
