"""The engines' load on SIGNALS, for those without a session: when it changed, at most every 2 seconds."""

import asyncio
from collections.abc import Callable
from typing import Any

from weft_contracts.ids import NodeId
from weft_contracts.signals import NodeLoad, ReplicaLoad
from weft_contracts.subjects import node_signal

EVERY_S = 2.0


async def signal_load(client: Any, node: NodeId, loads: Callable[[], tuple[ReplicaLoad, ...]]) -> None:
    """Publish for ever. What can't be sent is dropped: the next one says more."""
    subject = node_signal(node, "load")
    said: tuple[ReplicaLoad, ...] = ()
    while True:
        now = loads()
        if now != said and client.is_connected:
            await client.publish(subject, NodeLoad(node=node, replicas=now).model_dump_json().encode())
            said = now
        await asyncio.sleep(EVERY_S)
