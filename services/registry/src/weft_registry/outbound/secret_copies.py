"""Copies of secrets for the nodes that are to have them, each sealed to its node's key; what nobody needs is erased.

It looks at what lies in the bucket and at what the state wants there, and makes up the difference: so a registry that
was killed, or another one, goes on where this one was.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft_contracts import secrets
from weft_contracts.ids import NodeId
from weft_eventlog import LogUnavailable
from weft_eventlog.sealed_secrets import erase_sealed, get_sealed, put_sealed, sealed_keys
from weft_identity.trust import Trust
from weft_runtime.leadership import Leadership
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_registry.domain.secrets import copies_due
from weft_registry.domain.state import RegistryState

if TYPE_CHECKING:
    from weft_identity.sealing import SealingKey

_log: Any = get_logger("weft.registry.secrets")
LOOK = 0.1
PAUSE = 1.0
LIST_EVERY = 30.0
"""Seconds between two looks at the bucket, where the log says nothing new."""
_NEVER = float("-inf")
UNCLAIMED = 600.0
"""So many seconds a value lies that no fact names: its request may be on its way. Then it is erased."""


class SecretCopies:
    """Keeps the bucket as the state wants it. While the log stands still it asks for a list every 30 s, and nothing
    else; each copy costs an opening and a sealing (0.2 ms together) and a write."""

    def __init__(
        self,
        runtime: Runtime,
        state: RegistryState,
        leadership: Leadership,
        trust: Trust,
        current: Callable[[], bool],
    ) -> None:
        """`current`: whether the state is the log's; nothing is laid out or erased by another one."""
        self._runtime = runtime
        self._state = state
        self._leadership = leadership
        self._trust = trust
        self._current = current
        self._key: SealingKey | None = None
        self._position = -1
        self._listed = _NEVER
        self._lying: set[str] = set()
        self._unclaimed: dict[str, float] = {}
        """When each value that no fact names was seen first, on the monotonic clock."""
        self._named: set[str] = set()
        """Values that facts named at the last turn."""

    async def run(self) -> None:
        """Lay out and erase, for ever."""
        while True:
            pause = LOOK
            if not self._leadership.held or not self._current():
                self._listed = _NEVER  # another one writes: what lies there is looked at anew
            elif self._due():
                try:
                    await self._turn()
                except LogUnavailable as error:
                    _log.warning("secrets not laid out", error=str(error))
                    self._listed, pause = _NEVER, PAUSE
            await asyncio.sleep(pause)

    def _due(self) -> bool:
        return self._position != self._state.fleet.position or time.monotonic() - self._listed > LIST_EVERY

    async def _turn(self) -> None:
        position = self._state.fleet.position
        wanted = {secrets.copy_key(node, name, v): (node, name) for (node, name), v in copies_due(self._state).items()}
        if time.monotonic() - self._listed > LIST_EVERY:
            self._lying = await sealed_keys(self._runtime.client)
            self._listed = time.monotonic()
            await self._show_key()
        for key in [key for key in wanted if key not in self._lying]:
            await self._lay_out(key, *wanted[key])
        for key in [key for key in self._lying if key.startswith("node.") and key not in wanted]:
            await self._erase(key)
        await self._forget_values()
        self._position = position

    async def _show_key(self) -> None:
        from weft_identity import sealing

        if self._key is None:
            self._key = sealing.registry_key(self._trust)
        own = sealing.public_bytes(self._key)
        if await get_sealed(self._runtime.client, secrets.KEY) != own:
            await put_sealed(self._runtime.client, secrets.KEY, own)

    async def _lay_out(self, key: str, node: NodeId, name: str) -> None:
        from weft_identity import nkey, sealing

        view, bearer = self._state.fleet.secrets.get(name), self._state.fleet.nodes.get(node)
        if view is None or bearer is None or key != secrets.copy_key(node, name, view.version):
            return  # it moved meanwhile: the next turn sees how
        assert self._key is not None
        value = await get_sealed(self._runtime.client, secrets.sealed_key(view.sealed))
        try:
            if value is None:
                raise sealing.CannotOpen("its sealed value is gone")
            opened = sealing.open_sealed(value, self._key, secrets.bound_to_name(name))
            to = sealing.node_key(bearer.public_key)
            copy = sealing.seal(opened, to, secrets.bound_to_node(node, name, view.version))
        except (sealing.CannotOpen, nkey.BadKey) as error:
            _log.error("a secret can't be given", secret=name, node=node, reason=str(error), remedy="set it anew")
            copy = secrets.UNREADABLE
        await put_sealed(self._runtime.client, key, copy)
        self._lying.add(key)
        _log.info("secret laid out", secret=name, node=node, version=view.version)

    async def _erase(self, key: str) -> None:
        await erase_sealed(self._runtime.client, key)
        self._lying.discard(key)

    async def _forget_values(self) -> None:
        """Erase what was replaced or removed, and what nobody came to claim.

        What this process never saw named has its time: a gateway lays a value out before its request is in the log.
        """
        now = time.monotonic()
        named = {secrets.sealed_key(view.sealed) for view in self._state.fleet.secrets.values()}
        unnamed = {key for key in self._lying if key.startswith("sealed.") and key not in named}
        self._unclaimed = {key: self._unclaimed.get(key, now) for key in unnamed}
        over = {key for key, since in self._unclaimed.items() if now - since > UNCLAIMED}
        for key in over | (self._named - named):
            await self._erase(key)
        self._named = named
