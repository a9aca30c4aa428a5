"""Messages on their way from the connection to the fold, many taken at once.

They skip the client's own way (a message object, a queue, a wake of the subscription's task for each): that took 13 µs
of a commit. The client still follows the consumer: what it counts is counted here, and whatever is not an ordinary
message in its turn (heartbeats, flow control, a gap, after which it makes the consumer anew) goes its way.
"""

import asyncio
from collections import deque
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from weft_eventlog.delivered import Delivered, delivered, of_message
from weft_eventlog.message_sanitizer import ACK, PLAIN, Process

_STALLED = "Nats-Consumer-Stalled"


class MessageBuffer:
    """In order. Above `size` messages the server's questions for flow control wait, so that it sends no more."""

    def __init__(self, client: Client, size: int) -> None:
        self._client = client
        self._size = size
        self._messages: deque[Delivered] = deque()
        self._some = asyncio.Event()
        self._owed = ""

    @property
    def full(self) -> bool:
        """Whether the server should wait."""
        return len(self._messages) >= self._size

    def add(self, message: Delivered) -> None:
        """Take one message in."""
        self._messages.append(message)
        if len(self._messages) == 1:
            self._some.set()

    def owe(self, subject: str) -> None:
        """Answer the server's question for flow control once there is room."""
        self._owed = subject

    async def put(self, message: Msg) -> None:
        """The subscription's callback: for what came before the client knew the consumer."""
        self.add(of_message(message))

    async def take(self, most: int, timeout: float) -> list[Delivered]:
        """The next messages, at least one. Raises TimeoutError after `timeout` seconds without any."""
        if not self._messages:
            self._some.clear()
            await asyncio.wait_for(self._some.wait(), timeout)
        else:
            await asyncio.sleep(0)  # others have their turn between two batches
        pop = self._messages.popleft
        taken = [pop() for _ in range(min(most, len(self._messages)))]
        if self._owed and not self.full:
            owed, self._owed = self._owed, ""
            await self._client.publish(owed)
        return taken


def bypass_client_queue(client: Client) -> None:
    """Let this client hand messages whose subscription's callback is a buffer's `put` to that buffer at once."""
    seam: Any = client
    if hasattr(seam, "_weft_shortened"):
        return
    seam._weft_shortened = True
    ordinary: Process = seam._process_msg
    stats: dict[str, int] = client.stats

    async def process(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        subscription: Any = seam._subs.get(sid)
        buffer = getattr(getattr(subscription, "_cb", None), "__self__", None)
        if type(buffer) is not MessageBuffer or subscription._jsi is None:
            await ordinary(sid, subject, reply, data, headers)
            return
        consumer = subscription._jsi
        if not subject.isascii() or (headers and headers[:10] != PLAIN):
            own = not reply.startswith(ACK)  # the server's
            if own and headers and buffer.full and (owed := reply.decode() or await _stalled(seam, headers)):
                consumer._active = True
                buffer.owe(owed)
            else:
                await ordinary(sid, subject, reply, data, headers)
            return
        text = reply.decode()
        tokens = text.split(".")
        message = delivered(subject.decode(), tokens, data, headers or b"") if reply.startswith(ACK) else None
        if message is None or message.place != consumer._dseq or not subscription._pending_queue.empty():
            await ordinary(sid, subject, reply, data, headers)
            return
        consumer._active = True
        consumer._dseq += 1
        consumer._sseq = message.sequence
        consumer._fciseq += 1
        consumer._cmeta = text
        subscription._received += 1
        stats["in_msgs"] += 1
        stats["in_bytes"] += len(data)
        buffer.add(message)

    seam._process_msg = process


async def _stalled(client: Any, headers: bytes) -> str:
    """The subject that a heartbeat of a stalled consumer wants answered; empty for none."""
    found: dict[str, str] = await client._process_headers(headers) or {}
    return found.get(_STALLED, "")
