"""What no client of ours would send is made readable, or passed over: it never ends a reader."""

import asyncio
from pathlib import Path

import pytest
from weft_contracts.commit import Recorded
from weft_contracts.ids import NodeId
from weft_contracts.topology import worker_durable
from weft_eventlog import EventLog, Projection, WorkerLog, apply_durable, durable_reader
from weft_eventlog.message_sanitizer import headers_of
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until

NODE = NodeId("n-two")
RUN = b"weft.ev.run.n-two.m-1.loading"
GOOD = b'[{"type":"loading","epoch":1,"incarnation":"a"}]'
ODD: dict[str, tuple[bytes, bytes, bytes]] = {
    "a subject that is no text": (b"weft.ev.run.n-two.\xff\xfe.loading", b"", GOOD),
    "a subject with an id that is none": (b"weft.ev.run.n-two.UPPER!.loading", b"", GOOD),
    "a long subject": (b"weft.ev.run.n-two." + b"a" * 3000 + b".loading", b"", GOOD),
    "a heartbeat": (RUN, b"NATS/1.0 100 Idle Heartbeat\r\n\r\n", b""),
    "a heartbeat by header": (RUN, b"NATS/1.0\r\nStatus: 100\r\nDescription: Idle Heartbeat\r\n\r\n", b""),
    "a question for flow control": (RUN, b"NATS/1.0 100 FlowControl Request\r\n\r\n", b""),
    "a status that is no text": (RUN, b"NATS/1.0 100 \xff\xfe\r\n\r\n", b""),
    "a consumer's end": (RUN, b"NATS/1.0 409 Consumer Deleted\r\n\r\n", GOOD),
    "headers of another protocol": (RUN, b"garbage\r\n\r\n", GOOD),
    "headers that end at once": (RUN, b"\r\n\r\n", GOOD),
    "headers that are no text": (RUN, b"NATS/1.0\r\n\xff\xfe: \x00\x01\r\n\r\n", GOOD),
    "headers of 60 kB": (RUN, b"NATS/1.0\r\nWeft-Correlation: " + b"x" * 60_000 + b"\r\n\r\n", GOOD),
}


async def test_no_message_that_a_worker_may_send_ends_a_reader(
    tmp_path: Path, mesh_server: MeshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_reader, "_HEARTBEAT", 0.4)  # a pull whose end was said by a worker is soon given up
    # given one reader that hears each as it comes
    await apply_durable(await mesh_server.root(), worker_durable(NODE))
    heard: list[Recorded] = []
    reader = EventLog(await mesh_server.service("scheduler"), actor="scheduler")
    live = Projection(reader, name="live", fold=heard.extend)
    following = asyncio.create_task(live.run())
    worker = await mesh_server.worker(NODE)
    # when a worker sends them by hand
    for subject, headers, body in ODD.values():
        size = len(headers) + len(body)
        await worker._send_command(
            b"HPUB %s %d %d\r\n%s%s\r\n" % (subject, len(headers), size, headers, body)
            if headers
            else b"PUB %s %d\r\n%s\r\n" % (subject, size, body)
        )
    answer = await worker.request(RUN.decode(), GOOD, timeout=30)
    assert b"seq" in answer.data

    # then it has folded them all; so has one that begins later, and the worker's own
    async def folded(position: int = len(ODD) + 1) -> bool:
        return live.position == position

    await until(folded, timeout=30)
    later = Projection(reader, name="later", fold=lambda _: None)
    again = asyncio.create_task(later.run())
    await asyncio.wait_for(later.caught_up.wait(), 30)
    own = WorkerLog(await mesh_server.worker(NODE), NODE)
    reading = asyncio.create_task(own.run(lambda _: None))
    await asyncio.wait_for(own.caught_up.wait(), 30)
    assert (len(ODD) + 1, len(ODD) + 1) == (later.position, own.position)
    assert (None, None) == (live.halted, later.halted)
    assert 200 >= max(len(commit.correlation_id) for commit in heard)
    for task in (following, again, reading):
        assert not task.done()
        task.cancel()
    await asyncio.gather(following, again, reading, return_exceptions=True)


@pytest.mark.parametrize(
    ("given", "reply", "expected"),
    [
        (b"NATS/1.0\r\na: b\r\n\r\n", b"", b"NATS/1.0\r\na: b\r\n\r\n"),
        (b"NATS/1.0 100 Idle\r\n\r\n", b"", b"NATS/1.0 100 Idle\r\n\r\n"),
        (b"NATS/1.0 100 Idle\r\n\r\n", b"$JS.ACK.x", b"NATS/1.0\r\n\r\n"),
        (b"NATS/1.0 503 \xff\r\n\r\n", b"", b"NATS/1.0 503 ?\r\n\r\n"),
        (b"N\r\n\r\n", b"", b""),
    ],
)
def test_only_the_server_speaks_of_its_states(given: bytes, reply: bytes, expected: bytes) -> None:
    assert expected == headers_of(given, reply)
