"""Removed nodes are shut out: their tokens are revoked at the server, which cuts their connections at once.

What was revoked is read from the server and not remembered here: so whoever leads, and after any restart, what is
missing is pushed. A node's revocation is forgotten when no token of its time can be good any more.
"""

import asyncio
import time
from typing import Any

from weft_contracts.ids import NodeId
from weft_contracts.topology import worker_durable
from weft_eventlog import LogUnavailable, drop_durable
from weft_eventlog.accounts import LOOKUP, UPDATE, account_token, push_account
from weft_eventlog.credentials import drop_credential
from weft_runtime.connection import connect
from weft_runtime.logs import get_logger
from weft_runtime.secured import nats_tls
from weft_runtime.service import Runtime
from weft_servers.grants import Permissions
from weft_servers.trust import Account, Trust

from weft_registry.domain.state import RegistryState

_log: Any = get_logger("weft.registry.revocations")
_PAUSE = 1.0
_CONNECT_S = 5.0
_USER_S = 60
_INBOX = "_INBOX_registry_revokes"
_MARGIN_S = 86_400.0
"""Longer than a token lives, a revocation is kept: clocks differ, and settings change."""


class Revocations:
    """Compares the removed nodes with what the server holds. Cost: one connection of the system account a removal."""

    def __init__(self, runtime: Runtime, state: RegistryState, trust: Trust, *, lasts: float) -> None:
        """`lasts`: seconds that a worker's token is good for."""
        self._runtime = runtime
        self._state = state
        self._trust = trust
        self._kept = lasts + _MARGIN_S
        self._settled: set[NodeId] = set()
        self._again_at = 0.0

    async def settle(self) -> None:
        """Shut out every removed node that may still hold a good token. Failures are told and tried again later."""
        if len(self._settled) == len(self._state.removals) or time.monotonic() < self._again_at:
            return
        oldest = time.time() - self._kept
        due = [id for id, at in self._state.removals.items() if id not in self._settled and at > oldest]
        try:
            if due:
                await self._revoke(due)
                for node in due:
                    await drop_durable(self._runtime.client, worker_durable(node))
                    await drop_credential(self._runtime.client, node)
        except LogUnavailable as error:
            self._again_at = time.monotonic() + _PAUSE
            self._runtime.health.set("revocations", f"removed nodes may still hold good tokens: {error}")
            _log.error("not revoked yet", nodes=due, error=str(error))
            return
        self._settled.update(self._state.removals)
        self._runtime.health.set("revocations", None)

    async def _revoke(self, nodes: list[NodeId]) -> None:
        keys = {self._state.fleet.nodes[node].public_key for node in nodes}
        account = self._trust.public(Account.WORKERS)
        client = await self._connected(account)
        try:
            current = await account_token(client, account)
            missing = keys - self._trust.revoked(Account.WORKERS, current=current).keys()
            if missing:
                now = int(time.time())
                token = self._trust.with_revocations(
                    Account.WORKERS,
                    dict.fromkeys(missing, now),
                    current=current,
                    forget_before=now - int(self._kept),
                )
                await push_account(client, token)
                _log.info("revoked", nodes=nodes)
        finally:
            await client.close()

    async def _connected(self, account: str) -> Any:
        permissions = Permissions(publish=(LOOKUP.format(account), UPDATE), subscribe=(f"{_INBOX}.>",))
        user = self._trust.user(Account.SYS, "registry", permissions, expires_in_s=_USER_S)
        url = self._runtime.settings.nats_url
        try:
            async with asyncio.timeout(_CONNECT_S):
                return await connect(
                    url,
                    jwt=user.token,
                    seed=user.seed.encode(),
                    inbox=_INBOX,
                    name="registry revokes",
                    tls=nats_tls(self._runtime.settings),
                )
        except Exception as error:  # only the log and the runtime know NATS's errors
            raise LogUnavailable(f"no connection of the system account: {error!r}") from error
