"""The registry as a process on a real log, with its own credentials and permissions."""

import asyncio
import base64
import json
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError
from weft_contracts import subjects
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.mesh import Founded
from weft_contracts.facts.node import Approved, CutOff, Healthy, Joined, Removed, Unhealthy, WentOffline
from weft_contracts.facts.request import (
    ApprovalRequested,
    Fulfilled,
    JoinRequested,
    Rejected,
    RemovalRequested,
    ResumeRequested,
)
from weft_contracts.facts.token import Created
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import CorrelationId, NodeId, node_id_of, request_id, token_hash, token_id
from weft_contracts.permissions import worker
from weft_contracts.topology import LEASES, worker_durable
from weft_eventlog import EventLog, LogUnavailable, WorkerLog
from weft_eventlog.credentials import get_credential
from weft_eventlog.system_account import account_token, push_account
from weft_identity import trust
from weft_identity.grants import FULL
from weft_identity.nkey import KeyPair, Role
from weft_runtime.connection import connect
from weft_testing.mesh_server import MeshServer
from weft_testing.service_process import ServiceProcess, mesh_settings, running
from weft_testing.waiting import until

HERE = Addresses(host="127.0.0.1", http_port=7000)


@dataclass
class Mesh:
    """A log, what is asked of the registry there, and workers that hold leases."""

    server: MeshServer
    root: Client
    log: EventLog
    folder: Path

    def registry(self, **settings: str) -> AbstractAsyncContextManager[ServiceProcess]:
        """A registry that makes itself a token from the secret `x`."""
        own: dict[str, str] = {
            "WEFT_TRUST": str(self.folder / "trust"),
            "WEFT_BOOTSTRAP_TOKEN_ID": token_id("x"),
            "WEFT_BOOTSTRAP_TOKEN_HASH": token_hash("x"),
        }
        return running(["-m", "weft_registry"], self.folder, mesh_settings(self.server, "registry") | own | settings)

    async def ask(self, fact: Fact) -> Fact:
        """Append a request and wait for its outcome."""
        request = subjects.request(request_id(os.urandom(10)))
        cause = Cause(CorrelationId(f"c-{request.key}"))
        await self.log.append(Commit(request, (fact,), Guard(request, 0), cause))

        async def outcome() -> list[Fact]:
            return [fact for commit in await self.commits(request.filter) for fact in commit.facts][1:]

        return (await until(outcome))[0]

    async def join(self, key: KeyPair, secret: str = "x") -> NodeId:
        node = node_id_of(key.public)
        asked = JoinRequested(token=token_id(secret), name=f"box-{node}", public_key=key.public, addresses=HERE)
        assert Fulfilled(result={"node": node}) == await self.ask(asked)
        return node

    async def commits(self, *filters: str) -> list[Recorded]:
        try:
            return [commit async for commit in self.log.read(*filters)]
        except LogUnavailable:
            return []

    async def facts(self, *filters: str) -> list[Fact]:
        return [fact for commit in await self.commits(*filters) for fact in commit.facts]

    async def seen(self, kind: type[Fact], count: int = 1) -> None:
        """Return once the log holds so many facts of a type."""

        async def probe() -> bool:
            return count <= sum(isinstance(fact, kind) for fact in await self.facts())

        await until(probe)

    async def credential(self, node: NodeId) -> dict[str, Any]:
        return json.loads(await until(lambda: get_credential(self.root, node)) or b"")

    @asynccontextmanager
    async def working(self, key: KeyPair) -> AsyncGenerator[Client]:
        """A worker that connects by the credential that lies ready for it, and holds its lease."""
        node = node_id_of(key.public)
        credential = await self.credential(node)
        client = await connect(
            credential["nats_url"],
            jwt=credential["jwt"],
            seed=key.seed.encode(),
            inbox=worker(node).inbox,
            name=node,
        )

        async def lease() -> None:
            while True:
                if client.is_connected:
                    await client.publish(subjects.node_lease(node), b"{}")
                await asyncio.sleep(0.3)

        speaking = asyncio.create_task(lease())
        try:
            yield client
        finally:
            speaking.cancel()
            await client.close()


@pytest.fixture
async def mesh(mesh_server: MeshServer, tmp_path: Path) -> Mesh:
    root = await mesh_server.root()
    return Mesh(mesh_server, root, EventLog(root, "test"), tmp_path)


async def test_a_machine_joins_is_approved_connects_by_its_credential_and_is_healthy(mesh: Mesh) -> None:
    key = KeyPair.new(Role.USER)
    async with mesh.registry() as registry:
        # given a token that doesn't approve
        await mesh.seen(Created)
        token = subjects.token(token_id("plain"))
        await mesh.log.append(
            Commit(
                token, (Created(hash=token_hash("plain"), approves=False),), Guard(token, 0), Cause(CorrelationId("c"))
            )
        )
        # when it joins, it is pending and gets no credential
        node = await mesh.join(key, "plain")
        await registry.ready()
        assert await get_credential(mesh.root, node) is None
        # when an admin approves it, its credential lies ready
        assert Fulfilled(result={"node": node}) == await mesh.ask(ApprovalRequested(node=node))
        assert mesh.server.url == (await mesh.credential(node))["nats_url"]
        # then it connects, is heard, and folds its own part of the log
        async with mesh.working(key) as client:
            await mesh.seen(Healthy)
            own: list[Recorded] = []
            folding = asyncio.create_task(WorkerLog(client, node).run(own.append))

            async def folded() -> bool:
                return 3 <= len(own)

            await until(folded)
            folding.cancel()
        assert [Joined, Approved, Healthy] == [type(fact) for commit in own for fact in commit.facts]
        # and the registry was denied nothing
        status, body = await registry.get("/healthz")
        assert 200 == status, body
        assert 0 == await registry.terminate()


async def test_a_registry_killed_and_started_again_has_the_same_state_and_repeats_no_fact(mesh: Mesh) -> None:
    keys = [KeyPair.new(Role.USER), KeyPair.new(Role.USER)]
    async with mesh.registry() as registry:
        await mesh.seen(Created)
        await mesh.join(keys[0])
        async with mesh.working(keys[0]):
            # given
            await mesh.seen(Healthy)
            before = await mesh.facts()
            # when
            await registry.kill()
            async with mesh.registry() as again:
                await again.ready()
                # then it still knows its token and decides, once the dead one's lease has run out
                await mesh.join(keys[1])
                after = await mesh.facts()
                assert before == after[: len(before)]
                assert ["join_requested", "joined", "approved", "claimed", "fulfilled"] == [
                    fact.type for fact in after[len(before) :]
                ]
                assert 1 == sum(isinstance(fact, Founded) for fact in after)


async def test_after_a_restart_of_nats_topology_and_leases_are_back_and_nobody_is_lost(mesh: Mesh) -> None:
    keys = [KeyPair.new(Role.USER), KeyPair.new(Role.USER)]
    settings = {
        "WEFT_START_GRACE": "0",
        "WEFT_RETURN_GRACE": "2",
        "WEFT_UNHEALTHY_AFTER": "3",
        "WEFT_OFFLINE_AFTER": "4",
    }
    async with mesh.registry(**settings) as registry:
        await mesh.seen(Created)
        nodes = [await mesh.join(key) for key in keys]
        async with mesh.working(keys[0]):
            async with mesh.working(keys[1]):
                await mesh.seen(Healthy, 2)
                # when the server is gone for longer than a node may be silent, and its memory with it
                mesh.server.server.stop()
                await asyncio.sleep(4)
                mesh.server.start_again()
                # then the leases are kept again
                js = mesh.root.jetstream(timeout=2)
                wanted = {subjects.service_lease("registry"), *(subjects.node_lease(node) for node in nodes)}

                async def leases() -> bool:
                    try:
                        info = await js.stream_info(LEASES.name, subjects_filter=">")
                    except Exception:
                        return False
                    return wanted <= set(info.state.subjects or {})

                await until(leases)
                # and the registry answers
                await mesh.join(KeyPair.new(Role.USER))
                await asyncio.sleep(3)  # past its grace
            # and when one falls silent now, it is the first that is found lost
            await mesh.seen(WentOffline)
        facts = await mesh.facts(subjects.kind_filter("node"))
        lost = [fact for fact in await mesh.facts(subjects.node(nodes[0]).filter) if isinstance(fact, WentOffline)]
        assert (1, []) == (sum(isinstance(fact, WentOffline) for fact in facts), lost)
        assert not any(isinstance(f, Unhealthy) for f in await mesh.facts(subjects.node(nodes[0]).filter))
        assert 0 == await registry.terminate(), registry.text()


async def test_a_removed_node_is_cut_off_at_once_and_stays_out_over_restarts_of_nats_and_of_the_registry(
    mesh: Mesh,
) -> None:
    stays, leaves, later = (KeyPair.new(Role.USER) for _ in range(3))
    async with mesh.registry() as registry:
        await mesh.seen(Created)
        nodes = {key.public: await mesh.join(key) for key in (stays, leaves, later)}
        credentials = {key.public: await mesh.credential(nodes[key.public]) for key in (stays, leaves, later)}
        async with mesh.working(stays) as neighbour, mesh.working(leaves) as removed:
            await mesh.seen(Healthy, 2)
            # when
            gone = nodes[leaves.public]
            assert Fulfilled(result={"node": gone, "state": "removed"}) == await mesh.ask(
                RemovalRequested(node=gone, why="sold")
            )
            # then its connection ends and it does not get in again; the others stay
            await until(lambda: _shut_out(removed))
            assert await _refused(credentials[leaves.public], leaves)
            assert neighbour.is_connected

            # and nothing of it is left for it to fetch or to read by
            async def cleared() -> bool:
                names = [each.name for each in await mesh.root.jetstream(timeout=30).consumers_info("EVENTS")]
                left = await get_credential(mesh.root, gone)
                return left is None and worker_durable(gone).name not in names

            await until(cleared)
        assert 0 == await registry.terminate(), registry.text()
    # when NATS starts anew, and a node is removed while no registry is there to shut it out
    mesh.server.restart()
    also = subjects.node(nodes[later.public])
    await mesh.log.append(Commit(also, (Removed(why="lost"),), None, Cause(CorrelationId("c"))))
    # then the one is still shut out, and the other once a registry is back
    assert await _refused(credentials[leaves.public], leaves)
    assert not await _refused(credentials[later.public], later)
    async with mesh.registry() as registry:

        async def shut() -> bool:
            return await _refused(credentials[later.public], later)

        await until(shut)
        assert not await _refused(credentials[stays.public], stays)
        assert await _refused(credentials[leaves.public], leaves)
        # and the name of the first is free for another machine, its key is not
        newcomer = KeyPair.new(Role.USER)
        asked = JoinRequested(token=token_id("x"), name=f"box-{gone}", public_key=newcomer.public, addresses=HERE)
        assert isinstance(await mesh.ask(asked), Fulfilled)
        again = await mesh.ask(asked.model_copy(update={"public_key": leaves.public, "name": "other"}))
        assert isinstance(again, Rejected)
        assert 403 == again.status
        status, body = await registry.get("/healthz")
        assert 200 == status, body


async def test_who_floods_is_cut_off_by_the_registry_itself_and_comes_back_by_an_admins_word_alone(mesh: Mesh) -> None:
    quiet, loud = KeyPair.new(Role.USER), KeyPair.new(Role.USER)
    async with mesh.registry(WEFT_NODE_SHARE="0.1") as registry:
        await mesh.seen(Created)
        neighbour, foe = await mesh.join(quiet), await mesh.join(loud)
        about = subjects.node(foe).filter

        async def shut_out(flooding: Client, credential: dict[str, Any], times: int) -> None:
            async def cut_off() -> bool:
                return times == sum(isinstance(fact, CutOff) for fact in await mesh.facts(about))

            await until(cut_off)
            await until(lambda: _shut_out(flooding))
            assert await _refused(credential, loud)

            async def nothing_lies_ready() -> bool:
                return await get_credential(mesh.root, foe) is None

            await until(nothing_lies_ready)

        async with mesh.working(quiet) as working:
            # when it sends leases over two connections, each within its share
            credential = await mesh.credential(foe)
            async with mesh.working(loud) as one, mesh.working(loud) as other:
                await mesh.seen(Healthy, 2)
                for client in (one, other):
                    for _ in range(1_500):
                        await client.publish(subjects.node_lease(foe), b"{}")
                await shut_out(one, credential, 1)
                await until(lambda: _shut_out(other))
            # and when it is back and writes facts that nobody can take out of the log again
            assert isinstance(await mesh.ask(ResumeRequested(node=foe)), Fulfilled)
            credential = await mesh.credential(foe)
            async with mesh.working(loud) as client:
                await mesh.seen(Healthy, 3)
                body = b"[" + b",".join(60 * [b'{"type":"pressure_changed","device":0,"bytes":1}']) + b"]"
                for _ in range(10):
                    await client.publish(subjects.machine(foe).subject("pressure_changed"), body)
                await shut_out(client, credential, 2)
            # then a removal after its return shuts out what it was given on its return
            assert isinstance(await mesh.ask(ResumeRequested(node=foe)), Fulfilled)
            credential = await mesh.credential(foe)
            assert not await _refused(credential, loud)
            assert isinstance(await mesh.ask(RemovalRequested(node=foe, force=True)), Fulfilled)

            async def refused() -> bool:
                return await _refused(credential, loud)

            await until(refused)
            # and nothing of it all was anything to the other
            assert working.is_connected
        said = [fact.type for fact in await mesh.facts(subjects.node(neighbour).filter)]
        assert ["joined", "approved", "healthy"] == said
        status, body = await registry.get("/healthz")
        assert 200 == status, body


async def _shut_out(client: Client) -> bool:
    return not client.is_connected


async def _refused(credential: dict[str, Any], key: KeyPair) -> bool:
    """Whether the server turns this credential away, without trying it again and again."""
    client = Client()

    async def told(_: Exception) -> None:
        """Refusals are what is asked for."""

    try:
        await client.connect(
            credential["nats_url"],
            user_jwt_cb=credential["jwt"].encode,
            signature_cb=lambda nonce: base64.b64encode(key.sign(nonce.encode())),  # pyright: ignore
            allow_reconnect=False,
            connect_timeout=30,
            error_cb=told,
        )
    except (NatsError, OSError):
        return True
    finally:
        await client.close()  # also one that was refused: its socket is still open
    return False


async def test_a_registry_brings_the_servers_accounts_to_its_own_version_and_keeps_who_was_shut_out(mesh: Mesh) -> None:
    # given a server whose account WORKERS is an earlier version's, with a node shut out
    shutil.copytree(mesh.folder / "trust", mesh.folder / "earlier")
    earlier = trust.load_or_make(mesh.folder / "earlier", trust.AccountExports())
    workers, gone = trust.Account.WORKERS, KeyPair.new(Role.USER).public
    user = earlier.user(trust.Account.SYS, "test", FULL)
    system = await connect(mesh.server.url, jwt=user.token, seed=user.seed.encode(), inbox="_INBOX_test", name="test")
    try:
        await push_account(system, earlier.with_revocations(workers, {gone: 5}))
        ours = mesh.server.trust

        async def there() -> str:
            return await account_token(system, ours.public(workers)) or ""

        assert not ours.says(workers, await there())
        async with mesh.registry() as registry:

            async def renewed() -> bool:
                return ours.says(workers, await there())

            await until(renewed)
            assert {gone: 5} == ours.revoked(workers, current=await there())
            assert 0 == await registry.terminate(), registry.text()
    finally:
        await system.close()


async def test_settings_that_do_not_fit_together_end_it_with_one_sentence(tmp_path: Path) -> None:
    settings = {"WEFT_OFFLINE_AFTER": "3", "WEFT_UNHEALTHY_AFTER": "4"}
    async with running(["-m", "weft_registry"], tmp_path, settings) as registry:
        assert 2 == await registry.ended()
        assert "settings: WEFT_OFFLINE_AFTER must be more than WEFT_UNHEALTHY_AFTER\n" == registry.text()


async def test_a_trust_folder_that_is_none_ends_it_with_one_sentence(mesh: Mesh) -> None:
    async with mesh.registry(WEFT_TRUST=str(mesh.folder / "nowhere")) as registry:
        assert 2 == await registry.ended()
        (line,) = [line for line in registry.lines() if line["level"] == "error"]
        assert "WEFT_TRUST" in line["why"]
