"""What this node installs, loads and holds, on SIGNALS: when it moved, at most every second, for people to look at."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from weft_contracts.ids import NodeId
from weft_contracts.signals import NodeProgress
from weft_contracts.subjects import node_signal

from weft_worker_agent.domain.node_progress import is_due

EVERY_S = 1.0


async def signal_progress(client: Any, node: NodeId, progress: Callable[[], NodeProgress]) -> None:
    """Publish for ever. What can't be sent is dropped: the next one says more."""
    subject = node_signal(node, "progress")
    said: NodeProgress | None = None
    said_at = 0.0
    while True:
        now = progress()
        if client.is_connected and is_due(said, now, time.monotonic() - said_at):
            await client.publish(subject, now.model_dump_json(exclude_defaults=True).encode())
            said, said_at = now, time.monotonic()
        await asyncio.sleep(EVERY_S)
