"""Attacks on what others need, too: more than a node may send, open or leave behind."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from nats.aio.client import Client
from weft_contracts.subjects import node_lease
from weft_testing.bare_node import LEASE, close_all
from weft_testing.flushed import flushed

from .attack import CUT_OFF, Attack, Foe
from .flood import flood


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
    subject = f"$JS.API.CONSUMER.MSG.NEXT.EVENTS.node-{foe.id}"
    for _ in range(2_000):
        await foe.client.publish(subject, b'{"batch":1,"expires":1000000000}', reply=foe.client.new_inbox())
    await flushed(foe.client)


async def _floods_signals(foe: Foe) -> None:
    for number in range(5_000):
        await foe.client.publish(f"weft.sig.node.{foe.id}.x{number}", b"x" * 512)
    await flushed(foe.client)


ATTACKS: tuple[Attack, ...] = (
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
