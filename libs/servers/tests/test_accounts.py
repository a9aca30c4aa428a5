"""The exports between the accounts, on a real server."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.errors import Error as NatsError
from nats.js.api import StreamConfig
from weft_identity.claims import mint_user, read
from weft_identity.grants import EVERYTHING, FULL, Permissions, Responses, ServiceExport, StreamExport
from weft_identity.nkey import KeyPair, Role
from weft_identity.trust import Account, AccountExports, Credentials, Trust, load_or_make
from weft_servers import nats_server
from weft_servers.nats_server import NatsServer
from weft_testing.flushed import flushed

Connect = Callable[[str, Credentials, str], Awaitable[Any]]

EXPORTS = AccountExports(
    workers=(
        ServiceExport("ev.run.>"),
        ServiceExport("$JS.API.CONSUMER.MSG.NEXT.EVENTS.*", streamed=True),
        ServiceExport("$JS.API.CONSUMER.INFO.EVENTS.*"),
        ServiceExport("$JS.ACK.EVENTS.>"),
    ),
    observers=(StreamExport("ev.>"),),
)


def worker(trust: Trust, name: str, *, key: KeyPair | None = None, now: int | None = None) -> Credentials:
    """A worker that may speak as itself, as the registry would mint it: from the signing key alone."""
    key = key or KeyPair.new(Role.USER)
    permissions = Permissions(
        publish=(
            f"ev.run.{name}.>",
            f"$JS.API.CONSUMER.MSG.NEXT.EVENTS.node-{name}",
            f"$JS.API.CONSUMER.INFO.EVENTS.node-{name}",
            f"$JS.ACK.EVENTS.node-{name}.>",
        ),
        subscribe=(f"_INBOX_{name}.>",),
        max_payload_bytes=4096,
        max_subscriptions=16,
    )
    signer, account = trust.worker_signing, trust.public(Account.WORKERS)
    return Credentials(mint_user(key.public, name, permissions, signer=signer, account=account, now=now), key.seed)


async def refused(client: Any, subject: str, data: bytes = b"{}") -> bool:
    """No answer, or one that is an error: an account without JetStream says just that."""
    try:
        return "error" in json.loads((await client.request(subject, data, timeout=0.3)).data)
    except NatsError:
        return True


async def append(client: Any, subject: str, data: bytes = b"{}") -> dict[str, Any]:
    return json.loads((await client.request(subject, data, timeout=30)).data)


async def ended(client: Any) -> None:
    for _ in range(1500):
        if not client.is_connected:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the connection still stands after 30 s")


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return load_or_make(tmp_path / "trust", EXPORTS)


@pytest.fixture
def server(tmp_path: Path, trust: Trust) -> Iterator[NatsServer]:
    with nats_server.start(tmp_path / "nats", operator=trust.operator_mode()) as server:
        yield server


@pytest_asyncio.fixture
async def mesh(server: NatsServer, trust: Trust, connect: Connect) -> AsyncIterator[Any]:
    service = await connect(server.url, trust.user(Account.MESH, "registry", FULL), "_INBOX_registry")
    js = service.jetstream(timeout=30)
    await js.add_stream(StreamConfig(name="EVENTS", subjects=["ev.>"]))
    yield js


async def subjects(js: Any) -> list[str]:
    state = (await js.stream_info("EVENTS", subjects_filter=">")).state
    return sorted(state.subjects or {})


async def test_a_worker_appends_to_its_own_subjects_and_to_no_others(
    server: NatsServer, trust: Trust, mesh: Any, connect: Connect
):
    n1 = await connect(server.url, worker(trust, "n1"), "_INBOX_n1")

    stored = await append(n1, "ev.run.n1.m-1.ready")
    for foreign in ("ev.run.n2.m-1.ready", "ev.node.n1.drained", "$JS.API.STREAM.DELETE.EVENTS"):
        assert await refused(n1, foreign)

    assert (stored["stream"], stored["seq"]) == ("EVENTS", 1)
    assert await subjects(mesh) == ["ev.run.n1.m-1.ready"]


async def test_the_accounts_hold_where_a_workers_token_has_no_permissions(
    server: NatsServer, trust: Trust, mesh: Any, connect: Connect
):
    careless = trust.user(Account.WORKERS, "n1", FULL)
    n1 = await connect(server.url, careless, "_INBOX_n1")

    for foreign in ("ev.node.n1.drained", "$JS.API.STREAM.INFO.EVENTS", "$JS.API.DIRECT.GET.EVENTS"):
        assert await refused(n1, foreign, b'{"seq":1}')
    await n1.publish("ev.run.n1.m-1.ready", b"{}", reply="ev.node.n1.drained")  # the answer as an event
    await flushed(n1)
    await append(n1, "ev.run.n1.m-1.last")

    assert await subjects(mesh) == ["ev.run.n1.m-1.last", "ev.run.n1.m-1.ready"]


async def test_a_worker_reads_what_its_durable_holds_through_its_account(
    server: NatsServer, trust: Trust, mesh: Any, connect: Connect
):
    for n in range(3):
        await mesh.publish(f"ev.node.n1.e{n}", b"{}")
    await mesh.add_consumer("EVENTS", durable_name="node-n1", filter_subject="ev.node.n1.>", ack_policy="explicit")
    n1 = await connect(server.url, worker(trust, "n1"), "_INBOX_n1")
    inbox = n1.new_inbox()
    answers = await n1.subscribe(inbox)

    await n1.publish("$JS.API.CONSUMER.MSG.NEXT.EVENTS.node-n1", b'{"batch":3}', reply=inbox)
    seen = [await answers.next_msg(30) for _ in range(3)]
    for each in seen:  # asked for an answer: the server takes acknowledgements beside what comes behind them
        await n1.request(each.reply, b"+ACK", timeout=30)

    assert [each.subject for each in seen] == ["ev.node.n1.e0", "ev.node.n1.e1", "ev.node.n1.e2"]
    # The worker's own account answers too, and first: "JetStream not enabled for account".
    await n1.publish("$JS.API.CONSUMER.INFO.EVENTS.node-n1", b"", reply=inbox)
    infos = [json.loads((await answers.next_msg(30)).data) for _ in range(2)]
    [info] = [each for each in infos if "error" not in each]
    assert info["num_ack_pending"] == 0


async def test_an_observer_listens_and_changes_nothing(server: NatsServer, trust: Trust, mesh: Any, connect: Connect):
    # No permissions at all: what the account exports must be enough.
    observer = await connect(server.url, trust.user(Account.OBSERVERS, "o", FULL), "_INBOX_o")
    heard = await observer.subscribe("ev.>")
    await flushed(observer)

    await mesh.publish("ev.node.n1.joined", b"fact")
    message = await heard.next_msg(30)
    await observer.publish("ev.node.n1.forged", b"{}")
    await flushed(observer)
    assert await refused(observer, "$JS.API.STREAM.DELETE.EVENTS", b"")

    assert (message.subject, message.data) == ("ev.node.n1.joined", b"fact")
    assert await subjects(mesh) == ["ev.node.n1.joined"]


async def test_a_revoked_worker_is_cut_at_once_and_stays_out_over_a_restart(
    tmp_path: Path, server: NatsServer, trust: Trust, connect: Connect
):
    key, now = KeyPair.new(Role.USER), int(time.time())
    old = worker(trust, "n2", key=key, now=now - 60)
    n1 = await connect(server.url, worker(trust, "n1"), "_INBOX_n1")
    n2 = await connect(server.url, old, "_INBOX_n2")
    admin = await connect(server.url, trust.user(Account.SYS, "registry", FULL), "_INBOX_sys")

    lookup = f"$SYS.REQ.ACCOUNT.{trust.public(Account.WORKERS)}.CLAIMS.LOOKUP"
    current = (await admin.request(lookup, b"", timeout=30)).data.decode()
    token = trust.with_revocations(Account.WORKERS, {key.public: now - 1}, current=current)
    answer = json.loads((await admin.request("$SYS.REQ.CLAIMS.UPDATE", token.encode(), timeout=30)).data)

    assert answer["data"]["code"] == 200
    await ended(n2)
    assert n1.is_connected
    with pytest.raises(NatsError):
        await connect(server.url, old, "_INBOX_n2")

    for client in (n1, admin):
        await client.close()
    server.stop()
    exports = AccountExports((*EXPORTS.workers, ServiceExport("sig.>")), EXPORTS.observers)  # and over changed exports
    for each in (EXPORTS, exports):
        again = load_or_make(tmp_path / "trust", each, resolver=server.conf.accounts)
        with nats_server.start(tmp_path / "nats", operator=again.operator_mode()) as restarted:
            with pytest.raises(NatsError):
                await connect(restarted.url, old, "_INBOX_n2")
            later = await connect(restarted.url, worker(again, "n2", key=key, now=now), "_INBOX_n2")
            await later.close()


async def test_a_token_that_expired_no_longer_opens(server: NatsServer, trust: Trust, connect: Connect):
    key = KeyPair.new(Role.USER)
    long_ago = int(time.time()) - 100
    token = mint_user(key.public, "old", FULL, signer=trust.accounts[Account.MESH], expires_in_s=50, now=long_ago)

    with pytest.raises(NatsError):
        await connect(server.url, Credentials(token, key.seed), "_INBOX")


async def test_a_message_over_the_users_limit_cuts_the_connection(
    server: NatsServer, trust: Trust, mesh: Any, connect: Connect
):
    n1 = await connect(server.url, worker(trust, "n1"), "_INBOX_n1")

    await n1.publish("ev.run.n1.m-1.ready", b"x" * 5000)

    await ended(n1)
    assert await subjects(mesh) == []


async def test_a_user_with_leave_to_answer_may_answer_and_no_more(server: NatsServer, trust: Trust, connect: Connect):
    permissions = Permissions(subscribe=("ask",), allow_responses=Responses())
    service = await connect(server.url, trust.user(Account.MESH, "s", permissions), "_INBOX_s")
    asker = await connect(server.url, trust.user(Account.MESH, "a", FULL), "_INBOX_a")
    asked = await service.subscribe("ask")
    others = await asker.subscribe("other")
    await flushed(service)

    pending = asyncio.ensure_future(asker.request("ask", b"?", timeout=30))
    question = await asked.next_msg(30)
    await service.publish("other", b"forged")
    await service.publish(question.reply, b"!")

    assert (await pending).data == b"!"
    assert others.pending_msgs == 0


async def test_with_a_scope_a_worker_gets_the_scopes_permissions_whatever_its_token_says(
    tmp_path: Path, connect: Connect
):
    scope = Permissions(("ev.run.{{name()}}.>",), ("_INBOX_{{name()}}.>",), max_payload_bytes=4096)
    trust = load_or_make(tmp_path / "scoped", AccountExports(EXPORTS.workers, EXPORTS.observers, scope))
    with nats_server.start(tmp_path / "nats", operator=trust.operator_mode()) as server:
        service = await connect(server.url, trust.user(Account.MESH, "registry", FULL), "_INBOX_registry")
        await service.jetstream(timeout=30).add_stream(StreamConfig(name="EVENTS", subjects=["ev.>"]))
        key = KeyPair.new(Role.USER)
        n1 = await connect(server.url, Credentials(trust.worker_token(key.public, "n1", None), key.seed), "_INBOX_n1")

        assert (await append(n1, "ev.run.n1.m-1.ready"))["seq"] == 1
        assert await refused(n1, "ev.run.n2.m-1.ready")
        everything = trust.worker_token(key.public, "n1", Permissions(EVERYTHING, EVERYTHING))
        with pytest.raises(NatsError):
            await connect(server.url, Credentials(everything, key.seed), "_INBOX_n1")
        await n1.close()
        await service.close()


async def test_a_strangers_token_does_not_open(tmp_path: Path, server: NatsServer, connect: Connect):
    stranger = load_or_make(tmp_path / "other", EXPORTS)

    with pytest.raises(NatsError):
        await connect(server.url, stranger.user(Account.MESH, "registry", FULL), "_INBOX")


async def test_the_server_knows_the_accounts_as_they_were_issued(server: NatsServer, trust: Trust, connect: Connect):
    admin = await connect(server.url, trust.user(Account.SYS, "registry", FULL), "_INBOX_sys")

    for account in (Account.MESH, Account.WORKERS, Account.OBSERVERS):
        lookup = f"$SYS.REQ.ACCOUNT.{trust.public(account)}.CLAIMS.LOOKUP"
        token = (await admin.request(lookup, b"", timeout=30)).data.decode()
        assert read(token, issuers=[trust.operator.public]).name == account
