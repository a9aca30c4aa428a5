"""An observer reads the log from its own place: what workers say, too. It changes nothing, and takes from no other."""

import json
from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from weft_contracts import permissions
from weft_contracts.topology import observer_durable
from weft_eventlog import apply_durable, drop_durable
from weft_testing.flushed import flushed
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

from .permission_world import API, ONE, denied, look

NEXT, RESET = f"{API}.CONSUMER.MSG.NEXT.EVENTS.observer-o", f"{API}.CONSUMER.RESET.EVENTS.observer-o"
PULL = b'{"batch":5,"no_wait":true}'


@pytest.fixture
async def places(root: Client, js: JetStreamContext) -> AsyncIterator[None]:
    """Two observers have a place each, and something has happened."""
    for name in ("o", "other"):
        await apply_durable(root, observer_durable(name))
    yield
    for name in ("o", "other"):
        await drop_durable(root, observer_durable(name))


@pytest.mark.usefixtures("places")
async def test_it_reads_what_services_and_workers_say_from_its_place_and_acknowledges_it(
    mesh: MeshServer, js: JetStreamContext
) -> None:
    worker = await mesh.worker(ONE)
    said = json.loads((await worker.request("weft.ev.machine.n-one.pressure_changed", b"[]", timeout=30)).data)["seq"]
    observer = await mesh.observer("o")
    heard = await observer.subscribe(inbox := observer.new_inbox())
    subjects: list[str] = []
    sequence = 0
    while sequence < said:
        await observer.publish(NEXT, PULL, reply=inbox)
        for _ in range(5):
            message = await heard.next_msg(30)
            if not message.reply:
                break
            subjects.append(message.subject)
            sequence = int(message.reply.split(".")[5])
            await observer.publish(message.reply, b"+ACK")
    assert {"weft.ev.node.n-two.joined", "weft.ev.run.n-one.m-1.ready"} <= set(subjects)
    assert "weft.ev.machine.n-one.pressure_changed" == subjects[-1]

    async def acknowledged() -> bool:
        info = await js.consumer_info("EVENTS", "observer-o")
        return info.ack_floor is not None and info.ack_floor.stream_seq == said

    await until(acknowledged)
    assert [] == mesh.errors


@pytest.mark.parametrize(
    "subject",
    [
        "weft.ev.node.n-one.joined",
        "weft.lease.node.n-one",
        "weft.sig.node.n-one.load",
        f"{API}.STREAM.INFO.EVENTS",
        f"{API}.STREAM.MSG.GET.EVENTS",
        f"{API}.DIRECT.GET.EVENTS",
        f"{API}.DIRECT.GET.KV_people.$KV.people.k-1",
        f"{API}.CONSUMER.CREATE.EVENTS",
        f"{API}.CONSUMER.CREATE.EVENTS.observer-o",
        f"{API}.CONSUMER.DURABLE.CREATE.EVENTS.observer-o",
        f"{API}.CONSUMER.DELETE.EVENTS.observer-o",
        f"{API}.CONSUMER.INFO.EVENTS.observer-o",
        f"{API}.CONSUMER.MSG.NEXT.EVENTS.observer-other",
        f"{API}.CONSUMER.RESET.EVENTS.observer-other",
        f"{API}.CONSUMER.MSG.NEXT.EVENTS.node-n-one",
        f"{API}.CONSUMER.RESET.EVENTS.node-n-one",
        "$JS.ACK.EVENTS.observer-other.1.1.1.1.1",
        "$JS.ACK.EVENTS.node-n-one.1.1.1.1.1",
        "$KV.credentials.n-one",
        "$SYS.REQ.CLAIMS.UPDATE",
        "_INBOX_registry.x",
        "_INBOX_other.x",
    ],
)
@pytest.mark.usefixtures("places", "unchanged")
async def test_it_must_not_send(mesh: MeshServer, subject: str) -> None:
    observer = await mesh.observer("o")
    await observer.publish(subject, b'{"seq":1}', reply="_INBOX_o.x")
    assert [subject.lower()] == await denied(mesh, observer)


@pytest.mark.parametrize(
    "subject",
    ["weft.ev.>", "weft.sig.>", "weft.lease.>", "weft.usage.>", "$KV.>", "$JS.>", "_INBOX.>", "_INBOX_other.>", ">"],
)
async def test_it_must_not_listen_to(mesh: MeshServer, subject: str) -> None:
    observer = await mesh.observer("o")
    await observer.subscribe(subject)
    assert [subject.lower()] == await denied(mesh, observer)


@pytest.mark.parametrize(
    "foreign",
    [
        "weft.ev.node.n-two.drained",
        "weft.ev.run.n-one.m-1.stopped",
        "weft.lease.node.n-one",
        "weft.sig.node.n-one.load",
        "$KV.credentials.n-one",
        "_INBOX_registry.x",
        "_INBOX_n-one.x",
        f"{API}.STREAM.DELETE.EVENTS",
        f"{API}.CONSUMER.RESET.EVENTS.observer-other",
        "$JS.ACK.EVENTS.observer-other.1.1.1.1.1",
    ],
)
@pytest.mark.usefixtures("places")
async def test_an_answer_sent_to_a_foreign_subject_goes_nowhere(
    mesh: MeshServer, root: Client, js: JetStreamContext, foreign: str
) -> None:
    # given
    heard = await root.subscribe(foreign)
    await flushed(root)
    observer = await mesh.observer("o")
    before = await look(js)
    # when its pulls, its rewinds and its acknowledgements name it for their answer
    answers = await observer.subscribe(inbox := observer.new_inbox())
    await observer.publish(NEXT, b'{"batch":1,"no_wait":true}', reply=inbox)
    message = await answers.next_msg(30)
    await observer.publish(message.reply, b"+NXT", reply=foreign)
    await observer.publish(NEXT, PULL, reply=foreign)
    await observer.publish(RESET, b'{"seq":1}', reply=foreign)
    await flushed(observer)
    # then nobody but itself has got anything, and the others' places are where they were
    assert b"error" not in (await observer.request(RESET, b"", timeout=30)).data
    await flushed(root)
    after = await look(js)
    del before.durables["observer-o"], after.durables["observer-o"]
    assert (before, 0) == (after, heard.pending_msgs)


@pytest.mark.usefixtures("places", "unchanged")
async def test_what_it_sends_above_its_limit_cuts_it_and_nobody_else(mesh: MeshServer) -> None:
    other, observer = await mesh.observer("other"), await mesh.observer("o")
    await observer.publish(NEXT, b"x" * (permissions.OBSERVER_PAYLOAD_BYTES + 1), reply="_INBOX_o.x")

    async def cut() -> bool:
        return observer.stats["reconnects"] > 0 or not observer.is_connected

    await until(cut)
    await flushed(other)
    assert other.is_connected
