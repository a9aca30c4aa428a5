"""What a party must not do, tried for real: the server refuses it, and nothing in the mesh has changed."""

import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext
from weft_contracts import catalogue, permissions, subjects
from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.facts.request import Fulfilled
from weft_contracts.ids import CorrelationId, NodeId, RequestId
from weft_eventlog import EventLog
from weft_eventlog.credentials import put_credential
from weft_servers.claims import mint_user
from weft_servers.grants import FULL
from weft_servers.mesh_walls import worker_grants
from weft_servers.nkey import KeyPair, Role
from weft_servers.trust import Account
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

ONE, TWO = NodeId("n-one"), NodeId("n-two")
API = "$JS.API"
AT = "Nats-Schedule"


@dataclass
class World:
    """All that the mesh's account holds: messages by stream and subject, each stream's last sequence, streams' and
    consumers' settings."""

    messages: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    last: dict[str, int] = field(default_factory=dict[str, int])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    durables: dict[str, Any] = field(default_factory=dict[str, Any])

    def new(self, later: "World") -> set[str]:
        """Subjects that have got messages since."""
        return {
            subject
            for stream, counts in later.messages.items()
            for subject, count in counts.items()
            if count > self.messages[stream].get(subject, 0)
        }

    def lost(self, later: "World") -> set[str]:
        """Subjects that have lost messages since."""
        return later.new(self)


async def look(js: JetStreamContext) -> World:
    world = World()
    for info in await js.streams_info():
        name = info.config.name
        assert name is not None
        counted = await js.stream_info(name, subjects_filter=">")
        world.messages[name] = dict(counted.state.subjects or {})
        world.last[name] = counted.state.last_seq
        world.settings[name] = info.config
    for consumer in await js.consumers_info("EVENTS"):
        if consumer.config.durable_name:
            world.durables[consumer.name] = (consumer.config, consumer.delivered)
    return world


@pytest.fixture
async def root(mesh: MeshServer) -> Client:
    return await mesh.root()


@pytest.fixture
async def js(root: Client) -> JetStreamContext:
    """The mesh with something in it: a fact and a lease of node one, and its credential."""
    js = root.jetstream(timeout=5)
    await js.publish("weft.ev.run.n-one.m-1.ready", b"[]")
    await js.publish("weft.ev.run.n-two.m-1.loading", b"[]")
    await js.publish("weft.ev.node.n-two.joined", b"[]")
    await root.publish(subjects.node_lease(ONE), b"{}")
    await put_credential(root, ONE, b"secret")
    return js


@pytest.fixture
async def unchanged(js: JetStreamContext) -> AsyncIterator[None]:
    """Nothing is different after the test."""
    before = await look(js)
    yield
    after = await look(js)
    assert before == after


async def denied(mesh: MeshServer, client: Client, count: int = 1) -> list[str]:
    """The subjects that the server has denied the client, once there are so many; nats-py lowers their case."""
    await client.flush()

    async def said() -> list[str]:
        errors = [error for error in mesh.errors if "permissions violation" in error.lower()]
        return errors if len(errors) >= count else []

    return sorted(error.partition('"')[2].rstrip("\"'") for error in await until(said, timeout=5))


# a worker: what its token must not let it send

FOREIGN = {
    "another node's run": "weft.ev.run.n-one.m-1.stopped",
    "another node's machine": "weft.ev.machine.n-one.reported",
    "its own node aggregate": "weft.ev.node.n-two.drained",
    "its own approval": "weft.ev.node.n-two.approved",
    "its own inspection": "weft.ev.inspection.n-two.i-1.requested",
    "a fact of its run that no worker writes": "weft.ev.run.n-two.m-1.voided",
    "a fact of its machine that no worker writes": "weft.ev.machine.n-two.voided",
    "a run without a replica": "weft.ev.run.n-two.ready",
    "a token": "weft.ev.token.t-1.created",
    "the brake": "weft.ev.mesh.mesh.brake_lifted",
    "a request": "weft.ev.request.q-1.deploy_requested",
    "another's lease": "weft.lease.node.n-one",
    "a service's lease": "weft.lease.service.scheduler",
    "another's signal": "weft.sig.node.n-one.load",
    "a service's signal": "weft.sig.service.gateway.demand",
    "a timer": "weft.timer.registry.x",
    "usage": "weft.usage.k-1",
    "another's durable": f"{API}.CONSUMER.MSG.NEXT.EVENTS.node-n-one",
    "to rewind another's durable": f"{API}.CONSUMER.RESET.EVENTS.node-n-one",
    "to acknowledge for another": "$JS.ACK.EVENTS.node-n-one.1.1.1.1.0",
    "to ask about its durable": f"{API}.CONSUMER.INFO.EVENTS.node-n-two",
    "to re-filter its durable": f"{API}.CONSUMER.CREATE.EVENTS.node-n-two",
    "to re-filter its durable, the old way": f"{API}.CONSUMER.DURABLE.CREATE.EVENTS.node-n-two",
    "a consumer of the whole log": f"{API}.CONSUMER.CREATE.EVENTS",
    "a named consumer of another's part": f"{API}.CONSUMER.CREATE.EVENTS.mine.weft.ev.node.n-one.>",
    "a consumer of the credentials": f"{API}.CONSUMER.CREATE.KV_credentials",
    "to delete another's durable": f"{API}.CONSUMER.DELETE.EVENTS.node-n-one",
    "to pause another's durable": f"{API}.CONSUMER.PAUSE.EVENTS.node-n-one",
    "a direct get": f"{API}.DIRECT.GET.EVENTS",
    "a direct get by subject": f"{API}.DIRECT.GET.EVENTS.weft.ev.run.n-one.m-1.ready",
    "a get from the leader": f"{API}.STREAM.MSG.GET.EVENTS",
    "another's credential": f"{API}.DIRECT.GET.KV_credentials.$KV.credentials.n-one",
    "another's credential from the leader": f"{API}.STREAM.MSG.GET.KV_credentials",
    "to lay out a credential": "$KV.credentials.n-two",
    "a blob": "$O.blobs.C.x",
    "to look at the stream": f"{API}.STREAM.INFO.EVENTS",
    "to look at the account": f"{API}.INFO",
    "to delete the stream": f"{API}.STREAM.DELETE.EVENTS",
    "to purge the stream": f"{API}.STREAM.PURGE.EVENTS",
    "to change the stream": f"{API}.STREAM.UPDATE.EVENTS",
    "to delete a message": f"{API}.STREAM.MSG.DELETE.EVENTS",
    "a stream of its own": f"{API}.STREAM.CREATE.MINE",
    "to carry the stream away": f"{API}.STREAM.SNAPSHOT.EVENTS",
    "another's inbox": "_INBOX_n-one.x",
    "a service's inbox": "_INBOX_registry.x",
    "to change the accounts": "$SYS.REQ.CLAIMS.UPDATE",
    "to look at the server": "$SYS.REQ.SERVER.PING",
}


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.usefixtures("unchanged")
async def test_a_worker_must_not_send(mesh: MeshServer, what: str) -> None:
    worker = await mesh.worker(TWO)
    answers = await worker.subscribe(worker.new_inbox())
    body = b'{"seq":1,"last_by_subj":"$KV.credentials.n-one","batch":1,"stream_name":"EVENTS","config":{"name":"x"}}'
    await worker.publish(FOREIGN[what], body, reply=answers.subject)
    assert [FOREIGN[what].lower()] == await denied(mesh, worker)
    assert 0 == answers.pending_msgs


@pytest.mark.parametrize(
    "subject",
    [
        ">",
        "weft.ev.>",
        "weft.lease.>",
        "weft.sig.>",
        "_INBOX.>",
        "_INBOX_n-one.>",
        "_INBOX_registry.>",
        "$KV.>",
        "$JS.>",
    ],
)
async def test_a_worker_must_not_listen_to(mesh: MeshServer, root: Client, js: JetStreamContext, subject: str) -> None:
    worker = await mesh.worker(TWO)
    heard = await worker.subscribe(subject)
    assert [subject.lower()] == await denied(mesh, worker)
    await js.publish("weft.ev.run.n-one.m-1.ready", b"[]")
    for each in ("weft.lease.node.n-one", "weft.sig.node.n-one.load", "_INBOX_n-one.x", "_INBOX_registry.x"):
        await root.publish(each, b"")
    await root.flush()
    await worker.flush()
    assert 0 == heard.pending_msgs


async def test_two_workers_do_not_hear_each_other(mesh: MeshServer, js: JetStreamContext) -> None:
    """They share an account: what one says to MESH must not pass by the other."""
    one, two = await mesh.worker(ONE), await mesh.worker(TWO)
    heard = await two.subscribe("_INBOX_n-two.>")
    await one.publish(subjects.node_lease(ONE), b"{}")
    await one.publish("_INBOX_n-two.x", b"forged answer")
    assert ["_inbox_n-two.x"] == await denied(mesh, one)
    await two.flush()
    assert 0 == heard.pending_msgs


# a worker: what its token lets it send, turned against others. Only its own subjects may get anything new.

OWN_RUN, OWN_LEASE = "weft.ev.run.n-two.m-1.loading", "weft.lease.node.n-two"
NEXT, RESET = f"{API}.CONSUMER.MSG.NEXT.EVENTS.node-n-two", f"{API}.CONSUMER.RESET.EVENTS.node-n-two"
PULL = b'{"batch":5,"no_wait":true}'
AS = {
    "another's lease": "weft.lease.node.n-one",
    "another's run": "weft.ev.run.n-one.m-1.stopped",
    "another's machine": "weft.ev.machine.n-one.reported",
    "a node event": "weft.ev.node.n-two.drained",
    "a credential": "$KV.credentials.n-two",
    "a service's inbox": "_INBOX_registry.x",
    "a request to the log's API": f"{API}.STREAM.DELETE.EVENTS",
}
SENT = {
    "a pull": (NEXT, PULL),
    "a reset": (RESET, b'{"seq":1}'),
    "an append": (OWN_RUN, b"[]"),
    "a lease": (OWN_LEASE, b"{}"),
    "a signal": ("weft.sig.node.n-two.load", b"{}"),
}


@pytest.mark.parametrize("foreign", AS)
@pytest.mark.parametrize("sent", SENT)
async def test_an_answer_sent_to_a_foreign_subject_goes_nowhere(
    mesh: MeshServer, root: Client, js: JetStreamContext, sent: str, foreign: str
) -> None:
    # given
    heard = await root.subscribe(AS[foreign])
    await root.flush()
    worker = await mesh.worker(TWO)
    before = await look(js)
    # when
    subject, body = SENT[sent]
    await worker.publish(subject, body, reply=AS[foreign])
    await worker.flush()
    # then an append of its own afterwards has an answer, so the earlier ones are through too
    assert "seq" in json.loads((await worker.request(OWN_RUN, b"[]", timeout=5)).data)
    await root.flush()
    after = await look(js)
    assert before.new(after) <= {OWN_RUN, OWN_LEASE, "weft.sig.node.n-two.load"}
    assert (set(), 0) == (before.lost(after), heard.pending_msgs)
    assert before.settings == after.settings


HEADERS: dict[str, tuple[str, dict[str, str]]] = {
    "a rollup of all leases": (OWN_LEASE, {"Nats-Rollup": "all"}),
    "a rollup of its lease": (OWN_LEASE, {"Nats-Rollup": "sub"}),
    "a rollup of the whole log": (OWN_RUN, {"Nats-Rollup": "all"}),
    "a rollup of its own history": (OWN_RUN, {"Nats-Rollup": "sub"}),
    "a schedule into a node event": (OWN_RUN, {AT: "@every 1s", "Nats-Schedule-Target": "weft.ev.node.n-two.drained"}),
    "a schedule of its lease": (OWN_LEASE, {AT: "@every 1s", "Nats-Schedule-Target": "weft.lease.node.n-one"}),
    "an event that expires": (OWN_RUN, {"Nats-TTL": "1"}),
    "a counter": (OWN_RUN, {"Nats-Incr": "1"}),
    "an append to another stream": (OWN_RUN, {"Nats-Expected-Stream": "LEASES"}),
    "a guard on another's aggregate": (
        OWN_RUN,
        {
            "Nats-Expected-Last-Subject-Sequence": "999999",
            "Nats-Expected-Last-Subject-Sequence-Subject": "weft.ev.run.n-one.>",
        },
    ),
}


@pytest.mark.parametrize("what", HEADERS)
@pytest.mark.usefixtures("unchanged")
async def test_the_server_refuses_a_workers(mesh: MeshServer, what: str) -> None:
    worker = await mesh.worker(TWO)
    subject, headers = HEADERS[what]
    answer = json.loads((await worker.request(subject, b"[]", timeout=5, headers=headers)).data)
    assert "error" in answer, answer


async def test_batches_that_a_worker_never_commits_do_not_stop_a_service(
    mesh: MeshServer, js: JetStreamContext
) -> None:
    # given more open batches than the server takes
    worker = await mesh.worker(TWO)
    for number in range(60):
        headers = {"Nats-Batch-Id": f"b{number}", "Nats-Batch-Sequence": "1"}
        await worker.publish(OWN_RUN, b"[]", headers=headers)
    await worker.flush()
    # when a service appends a batch, it gets through in the end
    log = EventLog(await mesh.service("registry"), actor="registry")
    requests = [subjects.request(RequestId(f"q-{time.monotonic_ns()}-{n}")) for n in range(2)]
    landed = await log.append(
        *(Commit(each, (Fulfilled(),), Guard(each, 0), Cause(CorrelationId("c"))) for each in requests), timeout=30
    )
    assert 2 == len(landed)


async def test_an_id_that_a_worker_took_first_is_not_taken_for_the_true_commits(
    mesh: MeshServer, js: JetStreamContext
) -> None:
    """Dedupe ids are one space for the stream. They can't be guessed; one that leaked is named."""
    from weft_contracts.ids import EventId
    from weft_eventlog import ForeignDuplicate

    worker = await mesh.worker(TWO)
    id = f"leaked-{time.monotonic_ns()}"
    await worker.request(OWN_RUN, b"[]", timeout=5, headers={"Nats-Msg-Id": id})
    log = EventLog(await mesh.service("registry"), actor="registry")
    request = subjects.request(RequestId(f"q-{time.monotonic_ns()}"))
    with pytest.raises(ForeignDuplicate):
        await log.append(Commit(request, (Fulfilled(),), None, Cause(CorrelationId("c")), EventId(id)))


@pytest.mark.usefixtures("unchanged")
async def test_an_oversized_message_ends_only_the_connection_of_its_worker(mesh: MeshServer) -> None:
    one = await mesh.worker(ONE)
    two = await mesh.worker(TWO, allow_reconnect=False)
    with contextlib.suppress(NatsError):
        await two.publish(OWN_RUN, b"x" * (permissions.WORKER_PAYLOAD_BYTES + 1))
        await two.flush()

    async def cut() -> bool:
        return not two.is_connected

    await until(cut)
    await one.flush()
    assert one.is_connected


# services: the fence against mistakes


@pytest.mark.parametrize("name", permissions.SERVICES)
@pytest.mark.usefixtures("unchanged")
async def test_a_service_must_not_write_facts_that_others_own(mesh: MeshServer, name: catalogue.Writer) -> None:
    service = await mesh.service(name)
    foreign: set[str] = set()
    for entry in catalogue.CATALOGUE:
        if name not in entry.writers:
            key = "n-one.x-1" if entry.kind in ("run", "inspection") else "x-1"
            foreign.add(subjects.Aggregate(entry.kind, key).subject(entry.type))
    assert foreign
    for subject in sorted(foreign):
        await service.publish(subject, b"[]")
    assert sorted(foreign) == await denied(mesh, service, len(foreign))


SERVICE_MUST_NOT: list[tuple[catalogue.Writer, str, str]] = [
    ("gateway", "lay out credentials", "$KV.credentials.n-one"),
    ("gateway", "write blobs", "$O.blobs.C.x"),
    ("gateway", "make durables", f"{API}.CONSUMER.DURABLE.CREATE.EVENTS.node-n-one"),
    ("gateway", "hold another's lease", "weft.lease.service.registry"),
    ("gateway", "hold a node's lease", "weft.lease.node.n-one"),
    ("scheduler", "delete a stream", f"{API}.STREAM.DELETE.EVENTS"),
    ("scheduler", "purge the log", f"{API}.STREAM.PURGE.EVENTS"),
    ("scheduler", "delete an event", f"{API}.STREAM.MSG.DELETE.EVENTS"),
    ("scheduler", "delete a durable", f"{API}.CONSUMER.DELETE.EVENTS.node-n-one"),
    ("scheduler", "read credentials", f"{API}.DIRECT.GET.KV_credentials.$KV.credentials.n-one"),
    ("scheduler", "settle usage", "weft.usage.k-1"),
    ("reconciler", "set another's timer", "weft.timer.scheduler.x"),
    ("reconciler", "put names of people", "$KV.people.k-1"),
    ("reconciler", "speak as a node", "weft.sig.node.n-one.load"),
    ("metadata-cache", "lay out credentials", "$KV.credentials.n-one"),
    ("metadata-cache", "read credentials", f"{API}.STREAM.MSG.GET.KV_credentials"),
    ("metadata-cache", "answer another's requests", "_INBOX_gateway.x"),
    ("registry", "purge the log", f"{API}.STREAM.PURGE.EVENTS"),
    ("registry", "delete a stream", f"{API}.STREAM.DELETE.KV_people"),
    ("registry", "put names of people", "$KV.people.k-1"),
    ("registry", "carry the stream away", f"{API}.STREAM.SNAPSHOT.EVENTS"),
    ("registry", "step the leader down", f"{API}.STREAM.LEADER.STEPDOWN.EVENTS"),
    ("registry", "change the accounts", "$SYS.REQ.CLAIMS.UPDATE"),
]


@pytest.mark.parametrize(
    ("name", "what", "subject"), SERVICE_MUST_NOT, ids=[f"{n}-{w}" for n, w, _ in SERVICE_MUST_NOT]
)
@pytest.mark.usefixtures("unchanged")
async def test_a_service_must_not(mesh: MeshServer, name: catalogue.Writer, what: str, subject: str) -> None:
    service = await mesh.service(name)
    await service.publish(subject, b"{}", reply=service.new_inbox())
    assert [subject.lower()] == await denied(mesh, service), what


@pytest.mark.parametrize("subject", ["_INBOX_registry.>", "_INBOX.>", "$KV.>", "$JS.>", ">", "weft.timer.registry.>"])
async def test_a_service_must_not_listen_to(mesh: MeshServer, subject: str) -> None:
    gateway = await mesh.service("gateway")
    await gateway.subscribe(subject)
    assert [subject.lower()] == await denied(mesh, gateway)


# observers


@pytest.mark.parametrize(
    "subject",
    [
        "weft.ev.node.n-one.joined",
        "weft.lease.node.n-one",
        "weft.sig.node.n-one.load",
        f"{API}.STREAM.INFO.EVENTS",
        f"{API}.DIRECT.GET.EVENTS",
        f"{API}.CONSUMER.CREATE.EVENTS",
        "$KV.credentials.n-one",
        "_INBOX_registry.x",
    ],
)
@pytest.mark.usefixtures("unchanged")
async def test_an_observer_must_not_send(mesh: MeshServer, subject: str) -> None:
    observer = await mesh.observer("o")
    await observer.publish(subject, b'{"seq":1}', reply="_INBOX_o.x")
    assert [subject.lower()] == await denied(mesh, observer)


@pytest.mark.parametrize("subject", ["weft.lease.>", "weft.usage.>", "weft.timer.>", "$KV.>", "_INBOX.>", ">"])
async def test_an_observer_must_not_listen_to(mesh: MeshServer, subject: str) -> None:
    observer = await mesh.observer("o")
    await observer.subscribe(subject)
    assert [subject.lower()] == await denied(mesh, observer)


# tokens


async def refused(mesh: MeshServer, token: str, key: KeyPair) -> str:
    """Why the server doesn't let this token in."""
    with pytest.raises(NatsError) as refusal:
        await mesh.connect(token, key, "_INBOX_x", {"allow_reconnect": False, "max_reconnect_attempts": 1})
    return str(refusal.value)


async def test_an_expired_token_does_not_open(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    claims = worker_grants(permissions.worker(ONE))
    signer, account = mesh.trust.worker_signing, mesh.trust.public(Account.WORKERS)
    hour_ago = int(time.time()) - 3600
    token = mint_user(key.public, ONE, claims, signer=signer, account=account, expires_in_s=60, now=hour_ago)
    assert "Authorization Violation" in await refused(mesh, token, key)


async def test_a_token_that_expires_ends_the_connection(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    token = mesh.trust.worker_token(key.public, ONE, worker_grants(permissions.worker(ONE)), expires_in_s=2)
    worker = await mesh.connect(token, key, "_INBOX_n-one", {"allow_reconnect": False})

    async def cut() -> bool:
        return worker.is_closed

    await until(cut)


@pytest.mark.parametrize("account", [Account.WORKERS, Account.MESH])
async def test_a_token_signed_by_another_key_does_not_open(mesh: MeshServer, account: Account) -> None:
    key, stranger = KeyPair.new(Role.USER), KeyPair.new(Role.ACCOUNT)
    token = mint_user(key.public, "registry", FULL, signer=stranger, account=mesh.trust.public(account))
    assert "Authorization Violation" in await refused(mesh, token, key)


async def test_the_key_that_signs_workers_opens_no_other_account(mesh: MeshServer) -> None:
    """Who steals the registry's signing key gets workers, never a service."""
    key = KeyPair.new(Role.USER)
    signer = mesh.trust.worker_signing
    token = mint_user(key.public, "registry", FULL, signer=signer, account=mesh.trust.public(Account.MESH))
    assert "Authorization Violation" in await refused(mesh, token, key)


async def test_a_stolen_token_does_not_open_without_its_key(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    token = mesh.trust.worker_token(key.public, ONE, worker_grants(permissions.worker(ONE)))
    assert "Authorization Violation" in await refused(mesh, token, KeyPair.new(Role.USER))


async def test_a_token_that_was_changed_does_not_open(mesh: MeshServer) -> None:
    key = KeyPair.new(Role.USER)
    head, body, signature = mesh.trust.worker_token(key.public, ONE, worker_grants(permissions.worker(ONE))).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    claims["nats"]["pub"]["allow"] = [">"]
    forged = base64.urlsafe_b64encode(json.dumps(claims, separators=(",", ":")).encode()).decode().rstrip("=")
    assert "Authorization Violation" in await refused(mesh, f"{head}.{forged}.{signature}", key)


async def test_without_a_token_nothing_opens(mesh: MeshServer) -> None:
    with pytest.raises(NatsError, match="Authorization Violation"):
        await mesh.connect("", KeyPair.new(Role.USER), "_INBOX_x", {"allow_reconnect": False})
