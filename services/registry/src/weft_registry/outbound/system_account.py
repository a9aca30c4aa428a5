"""The registry's own connection of the server's system account: what it asks there waits behind nobody's messages.

The server answers the system account within milliseconds, whatever nodes send; on the connection over which the log
is read and written an answer may lie behind all that passes there.
"""

import asyncio
import time
from typing import Any

from weft_eventlog import LogUnavailable
from weft_eventlog.system_account import (
    CONNECTIONS,
    LOOKUP,
    SERVERS,
    TOTALS,
    UPDATE,
    WholeAccount,
    account_connections,
    account_token,
    account_totals,
    push_account,
    whole_account,
)
from weft_identity.claims import BadToken
from weft_identity.grants import Permissions
from weft_identity.trust import SHARED, Account, Trust
from weft_runtime.connection import connect
from weft_runtime.service import Runtime
from weft_runtime.tls_settings import nats_tls

_CONNECT_S = 5.0
_USER_S = 3600
_INBOX = "_INBOX_registry_system"


class SystemAccount:
    """One connection, opened when it is needed, and anew before its user's token expires."""

    def __init__(self, runtime: Runtime, trust: Trust) -> None:
        self._runtime = runtime
        self._trust = trust
        self._account = trust.public(Account.WORKERS)
        self._client: Any = None
        self._opened = 0.0
        self._opening = asyncio.Lock()
        runtime.on_stop("system account", self._close, 2.0)

    async def workers_token(self) -> str | None:
        """The token of the account WORKERS, as the server has it. Raises LogUnavailable."""
        return await account_token(await self._connected(), self._account)

    async def push(self, token: str) -> None:
        """Make the servers hold another token of an account. Raises LogUnavailable."""
        await push_account(await self._connected(), token)

    async def renew(self) -> list[str]:
        """Make the servers hold the accounts as the trust folder has them, which is where a new version of Weft says
        who sees what; the names of those that were others. Raises LogUnavailable."""
        client, renewed = await self._connected(), list[str]()
        for account in SHARED:
            try:
                token = self._trust.renewed(account, await account_token(client, self._trust.public(account)))
            except BadToken as error:
                raise LogUnavailable(f"the servers' account {account} is not of this mesh: {error}") from error
            if token is not None:
                await push_account(client, token)
                renewed.append(account)
        return renewed

    async def totals(self) -> list[dict[str, Any]]:
        """What passes through the account WORKERS, by server. Raises LogUnavailable."""
        return await account_totals(await self._connected(), self._account, self._runtime.servers)

    async def connections(self) -> list[tuple[str, dict[str, Any]]]:
        """The workers' connections, each with its server. Raises LogUnavailable."""
        return await account_connections(await self._connected(), self._account, self._runtime.servers)

    async def services(self) -> WholeAccount:
        """The connections of the account MESH, in which services live. Raises LogUnavailable."""
        return await whole_account(await self._connected(), self._trust.public(Account.MESH))

    async def _connected(self) -> Any:
        async with self._opening:
            client = self._client
            if client is not None and not client.is_closed and time.monotonic() - self._opened < _USER_S / 2:
                return client
            await self._close()
            self._client = await self._open()
            self._opened = time.monotonic()
            return self._client

    async def _open(self) -> Any:
        lookups = (LOOKUP.format(self._trust.public(account)) for account in SHARED)
        asks = (*lookups, UPDATE, TOTALS, CONNECTIONS, SERVERS)
        user = self._trust.user(
            Account.SYS, "registry", Permissions(publish=asks, subscribe=(f"{_INBOX}.>",)), expires_in_s=_USER_S
        )
        try:
            async with asyncio.timeout(_CONNECT_S):
                return await connect(
                    self._runtime.settings.nats_url,
                    jwt=user.token,
                    seed=user.seed.encode(),
                    inbox=_INBOX,
                    name="registry, system account",
                    tls=nats_tls(self._runtime.settings),
                )
        except Exception as error:  # only the log and the runtime know NATS's errors
            raise LogUnavailable(f"no connection of the system account: {error!r}") from error

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
