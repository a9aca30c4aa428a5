"""The secrets that what runs here names: fetched before an engine starts, looked at again while it runs.

Values stand in this process's memory, as long as an assignment names them.
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft_runtime.logs import get_logger

from weft_worker_agent.outbound.mesh.gateway import Gateway, NotNow, Refused
from weft_worker_agent.outbound.mesh.sealed_copy import CannotOpen, opened

WAIT_S = 30.0
"""So long an engine's start waits for its secrets; then it counts as a failed start, with what was heard last."""
AWAY_S = 3.0
"""So long a start waits for a gateway that doesn't answer where the value is known from before."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 3.0
_log: Any = get_logger("weft.secrets")


class NoSecret(Exception):
    """A secret could not be fetched in time; the message is a sentence that names it and says why."""


@dataclass(frozen=True, slots=True)
class HeldSecret:
    """A value, and which version of its name it is."""

    version: int
    value: str = field(repr=False)


def lines(secrets: Mapping[str, HeldSecret]) -> str:
    """As an engine host reads them from its pipe."""
    return "".join(json.dumps({"name": name, "value": each.value}) + "\n" for name, each in secrets.items())


class NodeSecrets:
    """All that this node holds."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._held: dict[str, HeldSecret] = {}

    async def fetched(self, names: Collection[str], wanted: Callable[[], bool]) -> dict[str, HeldSecret]:
        """The present values of all of these. `wanted`: whether somebody still waits. Raises NoSecret."""
        until = self._clock() + WAIT_S
        return {name: await self._fetched(name, wanted, until) for name in sorted(names)}

    async def refreshed(self, names: Collection[str]) -> dict[str, HeldSecret]:
        """The values that are held of these, after one look for newer ones. What no name asks for is forgotten."""
        for name in [name for name in self._held if name not in names]:
            del self._held[name]
        for name in sorted(names):
            try:
                await self._look(name)
            except (NotNow, Refused, CannotOpen) as error:
                _log.info("secret not looked at", secret=name, reason=str(error))
        return {name: self._held[name] for name in names if name in self._held}

    async def _fetched(self, name: str, wanted: Callable[[], bool], until: float) -> HeldSecret:
        began, pause, said = self._clock(), _FIRST_PAUSE_S, ""
        while True:
            try:
                await self._look(name)
                return self._held[name]
            except (NotNow, Refused, CannotOpen) as error:
                reason = str(error)
                silent = isinstance(error, NotNow)
            if silent and name in self._held and self._clock() > began + AWAY_S:
                _log.warning("secret taken as it was last", secret=name, reason=reason)
                return self._held[name]
            if self._clock() >= until or not wanted():
                raise NoSecret(f"the secret {name} could not be fetched within {WAIT_S:g} s: {reason}")
            if reason != said:
                said = reason
                _log.info("secret awaited", secret=name, reason=reason)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)

    async def _look(self, name: str) -> None:
        """Hold the newest value. Raises NotNow, Refused, CannotOpen."""
        have = self._held.get(name)
        copy = await self._gateway.secret(name, have.version if have is not None else 0)
        if copy is None or (have is not None and copy.version <= have.version):
            if have is None:
                raise NotNow("the gateway knows no version of it yet")
            return
        identity = self._gateway.identity
        value = await asyncio.to_thread(opened, copy, identity.node, name, identity.seed)
        self._held[name] = HeldSecret(copy.version, value)
        _log.info("secret fetched", secret=name, version=copy.version)
