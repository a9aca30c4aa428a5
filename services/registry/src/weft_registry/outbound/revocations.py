"""Nodes that were removed or cut off are shut out: their tokens are revoked, and the server ends their connections.

What was revoked is read from the server and not remembered here: so whoever leads, and after any restart, what is
missing is pushed. A node's revocation is forgotten when no token of its time can be good any more. One that was cut off
and is back has a token of a later time.
"""

import asyncio
import time
from collections.abc import Collection
from typing import Any

from weft_contracts.ids import NodeId
from weft_contracts.topology import worker_durable
from weft_eventlog import LogUnavailable, drop_durable
from weft_eventlog.credentials import drop_credential
from weft_identity.trust import Account, Trust
from weft_runtime.logs import get_logger
from weft_runtime.service import Runtime

from weft_registry.domain.state import RegistryState
from weft_registry.outbound.system_account import SystemAccount

_log: Any = get_logger("weft.registry.revocations")
_PAUSE = 1.0
_MARGIN_S = 86_400.0
"""Longer than a token lives, a revocation is kept: clocks differ, and settings change."""


class Revocations:
    """Compares the nodes that are shut out with what the server holds."""

    def __init__(
        self, runtime: Runtime, state: RegistryState, trust: Trust, system: SystemAccount, *, lasts: float
    ) -> None:
        """`lasts`: seconds that a worker's token is good for."""
        self._runtime = runtime
        self._state = state
        self._trust = trust
        self._system = system
        self._kept = lasts + _MARGIN_S
        self._settled: dict[NodeId, float] = {}
        """When each node that is shut out was, by the log."""
        self._position = -1
        self._again_at = 0.0
        self._pushing = asyncio.Lock()
        self._pushed: dict[NodeId, int] = {}

    def may_mint(self, node: NodeId) -> bool:
        """Whether a token made now would be of a later second than the node's revocation, which covers its own."""
        return int(time.time()) > self._pushed.get(node, 0)

    async def cut(self, nodes: Collection[NodeId]) -> None:
        """Revoke the tokens of nodes that flood before the log says so: it may be the log that they flood.

        Whoever starts anew makes them another token, so nothing is lost where the log never says it.
        Raises LogUnavailable.
        """
        await self._revoke(dict.fromkeys(nodes, time.time() + 1.0))

    async def settle(self) -> None:
        """Shut out every node that may still hold a good token. Failures are told and tried again later."""
        position = self._state.fleet.position
        if position == self._position or time.monotonic() < self._again_at:
            return
        oldest = time.time() - self._kept
        shut_out = {**self._state.removals, **self._state.cut_offs}
        self._settled = {id: at for id, at in self._settled.items() if shut_out.get(id) == at}
        due = {id: at for id, at in shut_out.items() if id not in self._settled and at > oldest}
        try:
            if due:
                await self._revoke(due)
                for node in due:
                    if node in self._state.removals:
                        await drop_durable(self._runtime.client, worker_durable(node))
                    await drop_credential(self._runtime.client, node)
        except LogUnavailable as error:
            self._again_at = time.monotonic() + _PAUSE
            told = f"nodes that are shut out may still hold good tokens: {error}"
            self._runtime.health.set("revocations", told, own=False)
            _log.error("not revoked yet", nodes=list(due), error=str(error))
            return
        self._settled.update(due)
        self._position = position
        self._runtime.health.set("revocations", None)

    async def _revoke(self, nodes: dict[NodeId, float]) -> None:
        """Revoke what each node was given until then, in seconds since the epoch."""
        async with self._pushing:  # each push holds all that came before
            current = await self._system.workers_token()
            revoked = self._trust.revoked(Account.WORKERS, current=current)
            keys = {node: self._state.fleet.nodes[node].public_key for node in nodes}
            missing = [node for node, at in nodes.items() if revoked.get(keys[node], 0) < int(at)]
            if not missing:
                return
            now = int(time.time())
            token = self._trust.with_revocations(
                Account.WORKERS,
                dict.fromkeys((keys[node] for node in missing), now),
                current=current,
                forget_before=now - int(self._kept),
            )
            await self._system.push(token)
            self._pushed.update(dict.fromkeys(missing, now))
            _log.info("revoked", nodes=missing)
