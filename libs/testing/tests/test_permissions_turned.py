"""What a worker may send, turned against others: only its own subjects get anything new."""

import contextlib
import json
import time

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext
from weft_contracts import permissions, subjects
from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.facts.request import Fulfilled
from weft_contracts.ids import CorrelationId, EventId, RequestId
from weft_eventlog import EventLog, ForeignDuplicate
from weft_testing.flushed import flushed
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

from .permission_world import API, ONE, TWO, look

AT = "Nats-Schedule"
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
    await flushed(root)
    worker = await mesh.worker(TWO)
    before = await look(js)
    # when
    subject, body = SENT[sent]
    await worker.publish(subject, body, reply=AS[foreign])
    await flushed(worker)
    # then an append of its own afterwards has an answer, so the earlier ones are through too
    assert "seq" in json.loads((await worker.request(OWN_RUN, b"[]", timeout=30)).data)
    await flushed(root)
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
    answer = json.loads((await worker.request(subject, b"[]", timeout=30, headers=headers)).data)
    assert "error" in answer, answer


async def test_batches_that_a_worker_never_commits_do_not_stop_a_service(
    mesh: MeshServer, js: JetStreamContext
) -> None:
    # given more open batches than the server takes
    worker = await mesh.worker(TWO)
    for number in range(60):
        headers = {"Nats-Batch-Id": f"b{number}", "Nats-Batch-Sequence": "1"}
        await worker.publish(OWN_RUN, b"[]", headers=headers)
    await flushed(worker)
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
    worker = await mesh.worker(TWO)
    id = f"leaked-{time.monotonic_ns()}"
    await worker.request(OWN_RUN, b"[]", timeout=30, headers={"Nats-Msg-Id": id})
    log = EventLog(await mesh.service("registry"), actor="registry")
    request = subjects.request(RequestId(f"q-{time.monotonic_ns()}"))
    with pytest.raises(ForeignDuplicate):
        await log.append(Commit(request, (Fulfilled(),), None, Cause(CorrelationId("c")), EventId(id)))


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
async def test_an_oversized_message_ends_only_the_connection_of_its_worker(mesh: MeshServer) -> None:
    one = await mesh.worker(ONE)
    two = await mesh.worker(TWO, allow_reconnect=False)
    with contextlib.suppress(NatsError):
        await two.publish(OWN_RUN, b"x" * (permissions.WORKER_PAYLOAD_BYTES + 1))
        await flushed(two)

    async def cut() -> bool:
        return not two.is_connected

    await until(cut)
    await flushed(one)
    assert one.is_connected
