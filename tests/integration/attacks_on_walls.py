"""Attacks on what is not the foe's to touch: others' subjects, leases, durables, inboxes, stores, and how it joins."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from nats.aio.client import Client
from weft_contracts.permissions import WORKER_PAYLOAD_BYTES
from weft_contracts.subjects import node_lease
from weft_testing.bare_node import LEASE, BareNode, close_all
from weft_testing.flushed import flushed

from .attack import CUT_OFF, Attack, Foe
from .flood import flood

API = "$JS.API"
BATCH = "Nats-Batch-Id: {}\r\nNats-Batch-Sequence: 1\r\n"
DENIED = "Denied by the server: its token names its own subjects, and nothing answers."
NOWHERE = "Its own request is answered to nobody: an answer does not cross into the account that owns the log."
REFUSED = "The log refuses the message."
OWN_WORD = "Taken as the foe's own word, which concerns no other node."


def sends(tries: str, *subjects: str, body: bytes = b"[]") -> Attack:
    """Messages to subjects that its token doesn't name. `{}` stands for its own id."""

    async def act(foe: Foe) -> None:
        for subject in subjects:
            await foe.denied(subject.replace("{}", foe.id).replace("{worker}", foe.victim), body)

    return Attack(tries, DENIED, act)


def replies(tries: str, reply: str) -> Attack:
    """Its own requests with another's subject for the answer."""

    async def act(foe: Foe) -> None:
        own = f"EVENTS.node-{foe.id}"
        target = reply.replace("{}", foe.id).replace("{worker}", foe.victim)
        await foe.goes_nowhere(f"{API}.CONSUMER.MSG.NEXT.{own}", b'{"batch":5,"no_wait":true}', target)
        await foe.goes_nowhere(f"{API}.CONSUMER.RESET.{own}", b'{"seq":1}', target)
        await foe.goes_nowhere(f"weft.lease.node.{foe.id}", b"{}", target)
        await foe.goes_nowhere(foe.own("loading", "m-none-1"), b"[]", target)

    return Attack(tries, NOWHERE, act)


def bears(tries: str, **headers: str) -> Attack:
    """An append of its own with headers that ask the log for more."""

    async def act(foe: Foe) -> None:
        sent = {name.replace("_", "-"): value.replace("{worker}", foe.victim) for name, value in headers.items()}
        await foe.refused(foe.own("loading"), b"[]", sent)

    return Attack(tries, REFUSED, act)


async def _listens(foe: Foe) -> None:
    for subject in (
        ">",
        "weft.>",
        "weft.ev.>",
        "weft.lease.>",
        "_INBOX.>",
        f"_INBOX_{foe.victim}.>",
        "$KV.>",
        "$SYS.>",
    ):
        await foe.deaf(subject)


async def _open_batches(foe: Foe) -> None:
    for number in range(60):
        headers = {"Nats-Batch-Id": f"open-{number}", "Nats-Batch-Sequence": "1"}
        await foe.client.publish(foe.own("loading"), b"[]", headers=headers)
    await flushed(foe.client)


async def _foreign_batch(foe: Foe) -> None:
    headers = {"Nats-Batch-Id": "mixed", "Nats-Batch-Sequence": "1"}
    await foe.client.publish(foe.own("loading"), b"[]", headers=headers)
    before = len(foe.node.errors)
    subject = f"weft.ev.node.{foe.victim}.removed"
    await foe.client.publish(
        subject,
        b'[{"type":"removed","why":""}]',
        headers=headers | {"Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"},
    )
    await foe.says_no(before)


async def _known_id(foe: Foe) -> None:
    known = foe.mesh.facts("node", "assigned")[-1]["event_id"]
    answer = await foe.answer(foe.own("loading"), b"[]", {"Nats-Msg-Id": known})
    assert answer.get("duplicate") or "error" in answer, answer


async def _many_ids(foe: Foe) -> None:
    for number in range(300):
        await foe.client.publish(foe.own("loading", "m-none-1"), b"[]", headers={"Nats-Msg-Id": f"{number:032x}"})
    await flushed(foe.client)


async def _oversized(foe: Foe) -> None:
    client = await foe.node.connect(foe.shown, allow_reconnect=False)
    try:
        await client.publish(foe.own("loading"), b"x" * (WORKER_PAYLOAD_BYTES + 1))
        await flushed(client)
    except Exception:  # the client may see the cut first
        pass
    async with asyncio.timeout(30):
        while client.is_connected:
            await asyncio.sleep(0.02)
    await client.close()


async def _second(foe: Foe) -> None:
    client = await foe.node.connect(foe.shown)
    answer = await client.request(foe.own("loading", "m-none-1"), b"[]", timeout=30)
    assert b"seq" in answer.data
    await client.close()


async def _stolen(foe: Foe) -> None:
    thief = BareNode(foe.mesh.url, "thief", foe.http)
    await foe.is_shut_out(foe.shown, thief)


async def _polls_for_another(foe: Foe) -> None:
    await foe.asks(401, foe.node.poll(node=foe.victim))


async def _old_poll(foe: Foe) -> None:
    await foe.asks(401, foe.node.poll(nonce=str(int(time.time()) - 3600)))


async def _takes_name(foe: Foe) -> None:
    other = BareNode(foe.mesh.url, "worker-1", foe.http)
    await foe.asks(409, other.register(foe.pending_token))


async def _moves_another(foe: Foe) -> None:
    key = next(node for node in foe.mesh.facts("node", "joined") if node["key"] == foe.victim)["fact"]["public_key"]
    body = {"token": foe.pending_token, "name": "worker-1", "public_key": key}
    addresses = {"host": "10.9.9.9", "http_port": 1}
    await foe.asks(401, foe.node.send_registration(body | {"addresses": addresses}))


async def _sends_again(foe: Foe) -> None:
    body = {"token": foe.pending_token, "name": "foe", "public_key": foe.node.key.public}
    said: dict[str, Any] = {**body, "labels": {"camp": "foe"}, "addresses": {"host": "127.0.0.1", "http_port": 0}}
    now = time.time()
    await foe.asks(202, foe.node.send_registration(said, nonce=f"{now:.6f}"))
    for sent in (now, now - 10):
        await foe.asks(401, foe.node.send_registration(said, nonce=f"{sent:.6f}"))


async def _nearly_takes_name(foe: Foe) -> None:
    await foe.asks(409, BareNode(foe.mesh.url, "Worker-1", foe.http).register(foe.pending_token))


async def _takes_id_for_name(foe: Foe) -> None:
    for name in (foe.victim, foe.victim.upper()):
        await foe.asks(400, BareNode(foe.mesh.url, name, foe.http).register(foe.pending_token))


async def _claims_automatic_label(foe: Foe) -> None:
    for label in ("node.name", "engine.llama.cpp", "gpu.vendor"):
        await foe.asks(400, foe.node.register(foe.pending_token, labels={"camp": "foe", label: "worker-1"}))


async def _crowds(foe: Foe) -> None:
    for number in range(6):
        answer = await BareNode(foe.mesh.url, f"crowd-{number}", foe.http).register(foe.crowd_token)
        assert answer.status_code == (202 if number < foe.CROWD else 429), f"{number}: {answer.text}"
        assert number < foe.CROWD or 1 <= int(answer.headers["retry-after"]) <= 60


async def _bears_launchers_token(foe: Foe) -> None:
    secret = (foe.mesh.state / "join-token").read_text().strip()
    await foe.asks(401, BareNode(foe.mesh.url, "guest", foe.http).register(secret))


async def _pending(foe: Foe) -> None:
    other = BareNode(foe.mesh.url, "waits", foe.http)
    await foe.asks(202, other.register(foe.pending_token))
    await foe.asks(202, other.poll())
    await foe.is_shut_out(foe.shown, other)


async def _floods_leases(foe: Foe) -> None:
    began = time.monotonic()
    for sent in range(500, 40_500, 500):
        await foe.pours(node_lease(foe.id), LEASE, 500)
        await asyncio.sleep(max(0.0, sent / 10_000 - (time.monotonic() - began)))


def _pours(fact: str, body: bytes) -> Callable[[Foe], Coroutine[Any, Any, None]]:
    """As fast as the server takes it; `fact`: of its machine, none: its lease."""

    async def act(foe: Foe) -> None:
        subject = foe.own(fact) if fact else node_lease(foe.id)
        sent = await asyncio.to_thread(flood, foe.shown, foe.node.key, subject, body, 4, 30.0)
        assert sent >= 20_000, f"only {sent}: no flood"

    return act


async def _many_connections(foe: Foe) -> None:
    clients: list[Client] = []
    for _ in range(10):  # until it is shut out
        tries = (foe.node.connect(foe.shown, allow_reconnect=False) for _ in range(15))
        clients += [each for each in await asyncio.gather(*tries, return_exceptions=True) if isinstance(each, Client)]
    async with asyncio.timeout(60):
        while any(client.is_connected for client in clients):
            await asyncio.sleep(0.1)
    await close_all(clients)


async def _floods_pulls(foe: Foe) -> None:
    subject = f"{API}.CONSUMER.MSG.NEXT.EVENTS.node-{foe.id}"
    for _ in range(2_000):
        await foe.client.publish(subject, b'{"batch":1,"expires":1000000000}', reply=foe.client.new_inbox())
    await flushed(foe.client)


async def _floods_signals(foe: Foe) -> None:
    for number in range(5_000):
        await foe.client.publish(f"weft.sig.node.{foe.id}.x{number}", b"x" * 512)
    await flushed(foe.client)


ATTACKS: tuple[Attack, ...] = (
    sends("Says that another node's replica has stopped.", "weft.ev.run.{worker}.m-1.stopped"),
    sends("Reports another node's hardware.", "weft.ev.machine.{worker}.reported"),
    sends("Approves a node, itself among them.", "weft.ev.node.{}.approved", "weft.ev.node.{worker}.approved"),
    sends(
        "Calls another node offline, drained or removed.",
        "weft.ev.node.{worker}.offline",
        "weft.ev.node.{worker}.removed",
    ),
    sends(
        "Assigns itself a replica, or takes one from another.",
        "weft.ev.node.{}.assigned",
        "weft.ev.node.{worker}.unassigned",
    ),
    sends("Answers a request for change in the registry's stead.", "weft.ev.request.q-1.fulfilled"),
    sends("Asks for a change as the gateway does.", "weft.ev.request.q-evil.removal_requested"),
    sends("Makes itself a registration token.", "weft.ev.token.t-evil.created"),
    sends("Sets or lifts the brake.", "weft.ev.mesh.mesh.brake_set", "weft.ev.mesh.mesh.brake_lifted"),
    sends("Voids an event.", "weft.ev.run.{}.m-1.voided", "weft.ev.machine.{}.voided"),
    sends("Scales or deletes a model.", "weft.ev.model.m-1.scaled", "weft.ev.model.m-1.deleted"),
    sends("Writes to its own node's aggregate.", "weft.ev.node.{}.labelled", "weft.ev.inspection.{}.i-1.requested"),
    sends("Publishes to subjects with wildcards.", "weft.ev.run.*.m-1.stopped", "weft.ev.>", "weft.lease.node.*"),
    sends("Renews another node's lease, so that a dead node looks alive.", "weft.lease.node.{worker}"),
    sends(
        "Takes a service's lease, so that nobody decides.",
        "weft.lease.service.registry",
        "weft.lease.service.scheduler",
    ),
    sends("Tells another node's load.", "weft.sig.node.{worker}.load"),
    sends(
        "Speaks as a service on SIGNALS, sets timers, settles usage.",
        "weft.sig.service.gateway.demand",
        "weft.timer.registry.x",
        "weft.usage.k-1",
    ),
    sends(
        "Pulls from another's durable, and so takes its assignments from it.",
        API + ".CONSUMER.MSG.NEXT.EVENTS.node-{worker}",
    ),
    sends("Acknowledges for another.", "$JS.ACK.EVENTS.node-{worker}.1.1.1.1.0"),
    sends("Rewinds another's durable.", API + ".CONSUMER.RESET.EVENTS.node-{worker}", body=b'{"seq":1}'),
    sends(
        "Makes itself a consumer of the whole log.",
        API + ".CONSUMER.CREATE.EVENTS",
        API + ".CONSUMER.CREATE.EVENTS.x.weft.ev.>",
    ),
    sends(
        "Gives its own durable another filter.",
        API + ".CONSUMER.CREATE.EVENTS.node-{}",
        API + ".CONSUMER.DURABLE.CREATE.EVENTS.node-{}",
    ),
    sends(
        "Deletes or pauses another's durable.",
        API + ".CONSUMER.DELETE.EVENTS.node-{worker}",
        API + ".CONSUMER.PAUSE.EVENTS.node-{worker}",
    ),
    sends(
        "Reads the log without a consumer.",
        API + ".DIRECT.GET.EVENTS",
        API + ".STREAM.MSG.GET.EVENTS",
        body=b'{"seq":1}',
    ),
    sends(
        "Reads another's credential.",
        API + ".DIRECT.GET.KV_credentials.$KV.credentials.{worker}",
        API + ".STREAM.MSG.GET.KV_credentials",
    ),
    sends("Lays out a credential for itself.", "$KV.credentials.{}"),
    sends("Reads or writes the names of people.", "$KV.people.k-1", API + ".DIRECT.GET.KV_people.$KV.people.k-1"),
    sends("Reads or writes blobs.", "$O.blobs.C.x", "$O.blobs.M.x", API + ".DIRECT.GET.OBJ_blobs.$O.blobs.M.x"),
    sends(
        "Plants a snapshot for the registry to start from.",
        "weft.snapshot.registry.registry.a.head",
        "weft.snapshot.scheduler.scheduler.a.0",
    ),
    sends(
        "Deletes, purges or changes the log.",
        API + ".STREAM.DELETE.EVENTS",
        API + ".STREAM.PURGE.EVENTS",
        API + ".STREAM.UPDATE.EVENTS",
        API + ".STREAM.MSG.DELETE.EVENTS",
    ),
    sends(
        "Carries the log away, or unseats its leader.",
        API + ".STREAM.SNAPSHOT.EVENTS",
        API + ".STREAM.LEADER.STEPDOWN.EVENTS",
    ),
    sends("Writes into others' inboxes: forged answers.", "_INBOX_{worker}.x", "_INBOX_registry.x", "_INBOX_gateway.x"),
    sends("Changes the accounts, to undo a revocation.", "$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.ACCOUNT.PING"),
    Attack(
        "Listens to everything, to others' inboxes, to leases and to credentials.",
        "Denied by the server: it may listen to its own inboxes only.",
        _listens,
    ),
    replies(
        "Asks with another node's run for a reply subject: forges its `stopped`.", "weft.ev.run.{worker}.m-1.stopped"
    ),
    replies("Asks with its own node's aggregate for a reply subject: forges its approval.", "weft.ev.node.{}.approved"),
    replies("Asks with a credential's key for a reply subject.", "$KV.credentials.{worker}"),
    replies("Asks with the log's API for a reply subject.", API + ".STREAM.PURGE.EVENTS"),
    replies("Asks with another's lease for a reply subject.", "weft.lease.node.{worker}"),
    bears("Rolls up: one message that replaces the whole log.", Nats_Rollup="all"),
    bears("Rolls up its own history.", Nats_Rollup="sub"),
    bears(
        "Schedules an event about another node.",
        Nats_Schedule="@every 1s",
        Nats_Schedule_Target="weft.ev.node.{worker}.drained",
    ),
    bears("Appends an event that expires.", Nats_TTL="1"),
    bears("Appends a counter.", Nats_Incr="1"),
    bears("Names another stream.", Nats_Expected_Stream="LEASES"),
    bears(
        "Asks by expectations where another's aggregate stands, with a wrong guess.",
        Nats_Expected_Last_Subject_Sequence="999999",
        Nats_Expected_Last_Subject_Sequence_Subject="weft.ev.run.{worker}.>",
    ),
    Attack(
        "Opens 60 batches that it never commits, so that others find none.",
        "The server lets go of them after a second; others' batches wait for that and land.",
        _open_batches,
    ),
    Attack(
        "Puts another node's `removed` into a batch of its own.",
        "Denied by the server, message by message; the batch is never committed.",
        _foreign_batch,
    ),
    Attack(
        "Takes the id of an event that it has seen, so that its append replaces it.",
        "The log calls it a duplicate; nothing is stored.",
        _known_id,
    ),
    Attack(
        "Guesses dedupe ids by the hundred.",
        "Ids are 128 random bits: none is hit. The appends are its own.",
        _many_ids,
    ),
    Attack("Sends a message larger than it may.", "The server cuts that connection, and no other.", _oversized),
    Attack(
        "Connects a second time with the same credential.",
        "It is the same node, with the same rights and no more.",
        _second,
    ),
    Attack(
        "Connects with a credential whose key it doesn't have.",
        "The server lets nobody in who can't sign its nonce with the credential's key.",
        _stolen,
    ),
    Attack(
        "Polls for another node's credential.",
        "401: the poll is signed with the node's key, and this is not it.",
        _polls_for_another,
    ),
    Attack("Polls again with an old nonce.", "401: a nonce is good for five minutes.", _old_poll),
    Attack("Registers under another node's name.", "409: a name is one node's until an admin removes it.", _takes_name),
    Attack(
        "Registers another node's public key with addresses of its own, to be sent its requests.",
        "401: a registration is signed with the key that it names.",
        _moves_another,
    ),
    Attack(
        "Sends a registration again, and one from before it, to have an old address back.",
        "401: a registration counts once, and none that was signed before the last one.",
        _sends_again,
        before="its old address, for five minutes after it was sent",
    ),
    Attack(
        "Registers under a name that differs from another's by the case of letters alone.",
        "409: names are told apart by more than that.",
        _nearly_takes_name,
        before="the name",
    ),
    Attack(
        "Registers under another node's id for a name.",
        "400: a name is not written as an id of a node.",
        _takes_id_for_name,
        before="the name, under which commands that named the other by its id would have shown two",
    ),
    Attack(
        "Gives itself labels that selectors take for the machine's own.",
        "400: what follows from the machine only the mesh says, or an admin.",
        _claims_automatic_label,
        before="replicas that were meant for other hardware",
    ),
    Attack(
        "Registers one new key after another with a token that asks for approval.",
        "429, with when to come again: a token lets so many wait at once, and so many come in a minute.",
        _crowds,
        before="200 nodes in 6 s, facts of which stay for ever",
    ),
    Attack(
        "Registers a key of its own with the launcher's token, which approves, read from its disk.",
        "401: that token serves the keys of the launcher's own workers, and no other.",
        _bears_launchers_token,
        before="a place in the mesh, approved",
    ),
    Attack(
        "Waits for approval and tries all the same.",
        "It is `pending`: its polls answer 202 without a credential, and another's opens nothing.",
        _pending,
    ),
    Attack(
        "Sends 10,000 leases a second.",
        CUT_OFF,
        _floods_leases,
        cut_off=True,
    ),
    Attack(
        "Sends leases over four connections, each as fast as the server reads.",
        CUT_OFF,
        _pours("", b"{}"),
        cut_off=True,
    ),
    Attack(
        "Floods the log with facts so, which stay there for ever.",
        CUT_OFF,
        _pours("pressure_changed", b'[{"type":"pressure_changed","device":0,"bytes":1}]'),
        cut_off=True,
    ),
    Attack("Opens 150 connections with its one credential.", CUT_OFF, _many_connections, cut_off=True),
    Attack(
        "Opens 2,000 pulls at once.",
        "The server bounds what waits at one durable; the others have theirs.",
        _floods_pulls,
    ),
    Attack(
        "Fills SIGNALS with subjects of its own.",
        "Live figures may be lost: the stream is bounded, and nothing is decided from it.",
        _floods_signals,
    ),
)
