"""The short way of a message to the fold: what it says is what the client's own way says."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from weft_contracts import subjects
from weft_contracts.codec import encode, encode_headers
from weft_contracts.commit import Cause, Commit, Guard, Recorded
from weft_contracts.facts import node
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import FileMissing
from weft_contracts.ids import CorrelationId, EventId, InspectionId, NodeId
from weft_eventlog import EventLog, Projection, ordered_consumer
from weft_eventlog.delivered import delivered, recorded
from weft_eventlog.guards import BATCH_ID, guard_headers
from weft_testing.mesh_server import MeshServer

A = subjects.node(NodeId("n-a"))
REPLY = "$JS.ACK.EVENTS.c.1.{sequence}.{place}.1700000000123456789.{pending}"
words = st.text("abcZ019-_:", max_size=12)
lines = st.lists(
    st.sampled_from([b"Nats-Msg-Id: x", b"Weft-Actor:  y ", b"Other: z", b"no colon", b"Weft-Skippable: sang"])
)


def both_ways(subject: str, body: bytes, headers: bytes) -> tuple[Recorded | None, Recorded | None]:
    reply = REPLY.format(sequence=7, place=3, pending=0)
    read = Client._parse_header_lines(headers[10:]) if headers else None
    slow = ordered_consumer.recorded(Msg(Client(), subject, reply, body, read))
    return slow, recorded(delivered(subject, reply.split("."), body, headers))


@given(event=words, correlation=words, causation=st.none() | words, actor=words, more=lines, guarded=st.booleans())
@example("e", "c", None, "a", [], True)
def test_a_commits_headers_say_the_same_either_way(
    event: str, correlation: str, causation: str | None, actor: str, more: list[bytes], guarded: bool
) -> None:
    # given a commit as it is written, and perhaps what others might add
    fact: Fact = node.Healthy()
    cause = Cause(CorrelationId(correlation), EventId(causation) if causation else None)
    commit = Commit(A, (fact,), Guard(A, 3) if guarded else None, cause)
    headers = encode_headers(commit, EventId(event), actor) | guard_headers(commit.guard) | {BATCH_ID: "b"}
    raw = b"NATS/1.0\r\n" + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items())
    raw += b"".join(line + b"\r\n" for line in more) + b"\r\n"
    # then
    slow, quick = both_ways(A.subject("healthy"), encode(commit), raw)
    assert slow == quick


@pytest.mark.parametrize("headers", [b"", b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\nWeft-Skippable: sang\r\n\r\n"])
@pytest.mark.parametrize("body", [b'[{"type":"sang","v":1}]', b"garbled", b'[{"type":"healthy","v":1}]'])
def test_odd_messages_say_the_same_either_way(headers: bytes, body: bytes) -> None:
    slow, quick = both_ways(A.subject("sang"), body, headers)
    assert slow == quick
    assert (None, None) == both_ways("weft.ev.nonsense", body, headers)


def test_a_skippable_facts_name_is_read() -> None:
    fact = FileMissing(inspection=InspectionId("i-1"), source="path:/x", reason="away")
    commit = Commit(replace(A, kind="machine"), (fact,), None, Cause(CorrelationId("c")))
    headers = encode_headers(commit, EventId("e"), "a")
    raw = ("NATS/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode()
    slow, quick = both_ways("weft.ev.machine.n-a.file_missing", encode(commit), raw)
    assert slow == quick


async def append(log: EventLog, times: int) -> int:
    last = 0
    for _ in range(times):
        (last,) = await log.append(Commit(A, (node.Healthy(),), None, Cause(CorrelationId("c"))))
    return last


async def test_a_message_that_gets_lost_on_its_way_is_read_again(mesh_server: MeshServer) -> None:
    # given a projection on a connection that loses the fifth message
    client = await mesh_server.root()
    log, folded = EventLog(client, actor="test"), list[Recorded]()
    projection = Projection(log, name="test", fold=folded.extend)
    task = asyncio.create_task(projection.run())
    await asyncio.wait_for(projection.caught_up.wait(), 30)
    seam: Any = client
    whole, lost = seam._process_msg, list[bytes]()

    async def lossy(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        if not lost and reply.startswith(b"$JS.ACK.EVENTS.") and reply.split(b".")[5] == b"5":
            lost.append(reply)
        else:
            await whole(sid, subject, reply, data, headers)

    seam._process_msg = lossy
    # when ten are appended
    last = await append(log, 10)
    await projection.wait_for(last, timeout=30)
    # then each is folded once
    assert (1, list(range(1, 11))) == (len(lost), [each.sequence for each in folded])
    assert projection.halted is None
    task.cancel()


async def test_a_hole_in_the_delivery_is_noticed(mesh_server: MeshServer) -> None:
    # given a projection whose buffer gets a message out of its turn
    log, folded = EventLog(await mesh_server.root(), actor="test"), list[Recorded]()
    projection = Projection(log, name="test", fold=folded.extend)
    texts = [REPLY.format(sequence=n, place=n, pending=0).split(".") for n in (1, 3)]
    # when it takes them
    await projection._take(
        [delivered(A.subject("healthy"), text, b'[{"type":"healthy","v":1}]', b"") for text in texts]
    )
    # then
    assert "a hole in the log's delivery before 3" == projection.halted


async def test_more_than_a_buffer_holds_is_folded_whole_and_in_order(
    mesh_server: MeshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a buffer that is soon full and a fold that is slower than the server
    monkeypatch.setattr(ordered_consumer, "QUEUE", 50)
    log, folded = EventLog(await mesh_server.root(), actor="test"), list[int]()
    body = "x" * 20_000
    for first in range(0, 1500, 500):
        fact = node.Labelled(labels={"long": body})
        await log.append(
            *(
                Commit(subjects.node(NodeId(f"n-{first + n}")), (fact,), None, Cause(CorrelationId("c")))
                for n in range(500)
            )
        )

    async def slow(commits: Any) -> None:
        folded.extend(commit.sequence for commit in commits)
        await asyncio.sleep(0.05)

    projection = Projection(log, name="test", fold=slow)
    task = asyncio.create_task(projection.run())
    await projection.wait_for(1500, timeout=60)
    assert (list(range(1, 1501)), None) == (folded, projection.halted)
    task.cancel()
