"""Who is connected to the servers of NATS, and which server doesn't say: real servers, one of them stopped."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from weft_contracts.formats import connection_name
from weft_eventlog.system_account import WholeAccount, whole_account
from weft_identity import trust
from weft_identity.grants import FULL
from weft_identity.mesh_exports import mesh_exports
from weft_runtime.connection import connect
from weft_servers import nats_server
from weft_servers.nats_server import NatsServer

WAIT_S = 60.0


class Servers:
    """Servers of one mesh, and clients of its accounts."""

    def __init__(self, keys: trust.Trust, servers: list[NatsServer]) -> None:
        self.keys = keys
        self.servers = servers
        self.clients: list[Any] = []

    async def client(self, number: int, account: trust.Account, name: str) -> Any:
        """Connected to one of the servers."""
        user = self.keys.user(account, "somebody", FULL, expires_in_s=600)
        inbox, url = "_INBOX_somebody", self.servers[number].url
        client = await connect(url, jwt=user.token, seed=user.seed.encode(), inbox=inbox, name=name, tls=None)
        self.clients.append(client)
        return client

    async def heard(self, asker: Any) -> tuple[list[str], tuple[str, ...]]:
        """Names of the mesh's connections, and of the servers that didn't tell theirs."""
        found: WholeAccount = await whole_account(asker, self.keys.public(trust.Account.MESH))
        return sorted(str(each["name"]) for _, each in found.connections), found.unheard

    async def close(self) -> None:
        """Close the clients, stop the servers."""
        for client in self.clients:
            await client.close()
        for server in self.servers:
            server.stop()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Servers]:
    keys = trust.load_or_make(tmp_path / "trust", mesh_exports())
    operator = keys.operator_mode()
    servers = Servers(
        keys, await asyncio.to_thread(lambda: nats_server.start_cluster(tmp_path / "nats", operator=operator))
    )
    yield servers
    await servers.close()


async def until_heard(cluster: Servers, asker: Any, expected: tuple[list[str], tuple[str, ...]]) -> None:
    """The servers find one another a while after each is ready."""
    async with asyncio.timeout(WAIT_S):
        while await cluster.heard(asker) != expected:
            await asyncio.sleep(0.2)


async def test_a_single_server_tells_all_at_once(tmp_path: Path) -> None:
    keys = trust.load_or_make(tmp_path / "trust", mesh_exports())
    server = await asyncio.to_thread(lambda: nats_server.start(tmp_path / "nats", operator=keys.operator_mode()))
    alone = Servers(keys, [server])
    try:
        asker = await alone.client(0, trust.Account.SYS, "asker")
        await alone.client(0, trust.Account.MESH, connection_name("scheduler"))
        assert ([connection_name("scheduler")], ()) == await alone.heard(asker)
    finally:
        await alone.close()


@pytest.mark.slow
async def test_a_server_that_does_not_answer_is_named_and_so_is_one_that_is_gone(cluster: Servers) -> None:
    asker = await cluster.client(0, trust.Account.SYS, "asker")
    await cluster.client(1, trust.Account.MESH, connection_name("scheduler"))
    await cluster.client(2, trust.Account.MESH, "gateway")
    # given servers that all tell
    both = sorted(["gateway", connection_name("scheduler")])
    await until_heard(cluster, asker, (both, ()))
    # when one stands still, with a service of an earlier version on it: then what is there is hidden, and that is said
    os.kill(cluster.servers[2].pid, signal.SIGSTOP)
    try:
        assert ([connection_name("scheduler")], ("n2",)) == await cluster.heard(asker)
    finally:
        os.kill(cluster.servers[2].pid, signal.SIGCONT)
    await until_heard(cluster, asker, (both, ()))
    # when one is gone altogether: it is missing until it is back, or taken out of the cluster
    os.kill(cluster.servers[1].pid, signal.SIGKILL)
    async with asyncio.timeout(WAIT_S):
        while (await cluster.heard(asker))[1] != ("n1",):
            await asyncio.sleep(0.2)
