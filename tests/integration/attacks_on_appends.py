"""Attacks on the log by way of an append that the foe may make: its headers, its batch, its id, its size."""

import asyncio
import contextlib

from weft_contracts.permissions import WORKER_PAYLOAD_BYTES
from weft_testing.flushed import flushed

from .attack import Attack, Foe

REFUSED = "The log refuses the message."


def bears(tries: str, **headers: str) -> Attack:
    """An append of its own with headers that ask the log for more."""

    async def act(foe: Foe) -> None:
        sent = {name.replace("_", "-"): value.replace("{worker}", foe.victim) for name, value in headers.items()}
        await foe.refused(foe.own("loading"), b"[]", sent)

    return Attack(tries, REFUSED, act)


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
    with contextlib.suppress(Exception):  # the client may see the cut first
        await client.publish(foe.own("loading"), b"x" * (WORKER_PAYLOAD_BYTES + 1))
    async with asyncio.timeout(30):
        while client.is_connected:
            await asyncio.sleep(0.02)
    await client.close()


ATTACKS: tuple[Attack, ...] = (
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
)
