"""A worker's end of the log: it appends what only it can say, and reads its own part through its durable.

Workers make no consumers and get nothing directly: the registry made the durable `node-<id>`; a worker rewinds
it, pulls, and acknowledges. Anything out of order (a lost or a repeated delivery) rewinds it to the last folded
commit, so the fold sees every commit once, in order.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from weft_contracts.commit import Commit, Recorded
from weft_contracts.ids import EventId, NodeId
from weft_contracts.permissions import WORKER_PAYLOAD_BYTES
from weft_contracts.topology import EVENTS, worker_durable

from weft_eventlog import ordered_consumer
from weft_eventlog.cancelling import end_if_cancelled
from weft_eventlog.errors import LogUnavailable
from weft_eventlog.log import EventLog, Trace

_API = "$JS.API.CONSUMER"
_PULL = 200
_LONG_POLL = 20.0
"""Seconds that the server holds an empty pull open."""
_HEARTBEAT = 2.0
"""Seconds between the server's signs that an empty pull still stands: a restarted server has forgotten it."""
_HEARD = "100"
_ECHO = 5.0
"""Seconds that a worker waits for its own commit to come back."""
_REMEMBERED = 4096
_log: Any = structlog.get_logger(part="weft.worker_log")

Fold = Callable[[Recorded], Awaitable[None] | None]


def _status(message: Msg) -> str:
    """The status that a message without a reply bears; empty for none."""
    return (message.headers or {}).get("Status", "")


class WorkerLog:
    """One worker's view of the log."""

    def __init__(self, client: Client, node: NodeId, trace: Trace | None = None) -> None:
        self._client = client
        self._node = node
        self._durable = worker_durable(node).name
        self._log = EventLog(client, actor=node, find=self._find_in_own_part, trace=trace)
        self._own: dict[EventId, int] = {}
        """Sequences of the last folded commits, to tell a conflict from a retry that had landed."""
        self.position = 0
        """Sequence of the last folded commit of this worker's part."""
        self.caught_up = asyncio.Event()
        self._expected = 0
        """The durable's own count of deliveries that must come next; 0: any."""

    async def append(self, commit: Commit, timeout: float = 20.0) -> int:
        """Append one commit of this node's machine or runs; see EventLog.append.

        Workers append no batches: what they say concerns one aggregate. A commit fits into 64 KiB, well under the
        96 KiB at which the server cuts a worker's connection.
        """
        assert WORKER_PAYLOAD_BYTES > 64 * 1024
        return (await self._log.append(commit, timeout=timeout))[0]

    async def run(self, fold: Fold) -> None:
        """Fold this worker's part of the log from its beginning, then as it grows. Ends only by cancellation,
        or by an error of the fold."""
        rewound = False
        while True:
            end_if_cancelled()
            try:
                if not rewound:
                    await self._rewind()
                    rewound = True
                rewound = await self._pull(fold)
            except (NatsError, LogUnavailable) as error:
                _log.info("log not reached", node=self._node, error=repr(error))
                rewound = False
                await asyncio.sleep(0.5)

    async def _find_in_own_part(self, commit: Commit, upto: int | None) -> int | None:
        """A worker may not read the stream; what it appended comes back through its durable."""
        deadline = asyncio.get_running_loop().time() + _ECHO
        while asyncio.get_running_loop().time() < deadline:
            if commit.event_id is not None and (sequence := self._own.get(commit.event_id)) is not None:
                return sequence
            if upto is not None and self.position >= upto:
                return None
            await asyncio.sleep(0.02)
        if upto is not None and self.position < upto:
            raise LogUnavailable(f"{self._node}'s part of the log did not come up to {upto} within {_ECHO:.0f} s")
        return None

    async def _rewind(self) -> None:
        """Let the durable begin behind the last folded commit."""
        request = json.dumps({"seq": self.position + 1}).encode()
        reply = await self._client.request(f"{_API}.RESET.{EVENTS.name}.{self._durable}", request, timeout=5.0)
        answer: dict[str, Any] = json.loads(reply.data)
        if "error" in answer:
            raise LogUnavailable(f"durable {self._durable} can't be rewound: {answer['error']}")
        self._expected = 0

    async def _pull(self, fold: Fold) -> bool:
        """One pull: fold what comes. False if the durable must be rewound."""
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox)
        request: dict[str, Any] = {
            "batch": _PULL,
            "expires": int(_LONG_POLL * 1e9),
            "idle_heartbeat": int(_HEARTBEAT * 1e9),
        }
        if not self.caught_up.is_set():
            request = {"batch": _PULL, "no_wait": True}
        left = _PULL
        try:
            await self._client.publish(
                f"{_API}.MSG.NEXT.{EVENTS.name}.{self._durable}", json.dumps(request).encode(), reply=inbox
            )
            while left:
                end_if_cancelled()
                message = await subscription.next_msg(timeout=_HEARTBEAT * 2.5)
                if not message.reply and _status(message) == _HEARD:
                    continue
                if not message.reply:
                    return self._ended(message)
                left -= 1
                if not await self._take(message, fold):
                    return False
            return True
        finally:
            await subscription.unsubscribe()

    def _ended(self, status: Msg) -> bool:
        """A pull's end: 404 nothing there, 408 the poll's time is over; all else calls for a new start."""
        code = _status(status)
        if code in ("404", "408"):
            self.caught_up.set()
            return True
        _log.info("pull ended", node=self._node, status=code)
        return False

    async def _take(self, message: Msg, fold: Fold) -> bool:
        sequence = ordered_consumer.stream_sequence(message)
        place = ordered_consumer.consumer_sequence(message)
        if self._expected and place != self._expected:
            return False
        self._expected = place + 1
        commit = ordered_consumer.recorded(message)
        if sequence > self.position and commit is not None:
            self._own[commit.event_id] = sequence
            if len(self._own) > _REMEMBERED:
                del self._own[next(iter(self._own))]
            outcome = fold(commit)
            if inspect.isawaitable(outcome):
                await outcome
        self.position = max(self.position, sequence)
        await self._client.publish(message.reply, b"+ACK")
        if ordered_consumer.pending(message) == 0:
            self.caught_up.set()
        return True
