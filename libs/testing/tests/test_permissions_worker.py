"""What a worker must not do, tried for real: the server refuses it, and nothing in the mesh has changed."""

import pytest
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from weft_contracts import subjects
from weft_testing.flushed import flushed
from weft_testing.mesh_server import MeshServer

from .permission_world import API, ONE, TWO, denied

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
    "a gateway's demand": "weft.sig.gateway.gateway-1.demand",
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
    "a secret, sealed to another": f"{API}.DIRECT.GET.KV_secrets.$KV.secrets.node.n-one.key.7",
    "to set a secret": "$KV.secrets.sealed.x",
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
    await flushed(root)
    await flushed(worker)
    assert 0 == heard.pending_msgs


async def test_two_workers_do_not_hear_each_other(mesh: MeshServer, js: JetStreamContext) -> None:
    """They share an account: what one says to MESH must not pass by the other."""
    one, two = await mesh.worker(ONE), await mesh.worker(TWO)
    heard = await two.subscribe("_INBOX_n-two.>")
    await one.publish(subjects.node_lease(ONE), b"{}")
    await one.publish("_INBOX_n-two.x", b"forged answer")
    assert ["_inbox_n-two.x"] == await denied(mesh, one)
    await flushed(two)
    assert 0 == heard.pending_msgs
