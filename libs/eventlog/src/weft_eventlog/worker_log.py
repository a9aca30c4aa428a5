"""A worker's end of the log: it appends what only it can say, and reads its own part through its durable.

Workers make no consumers and get nothing directly: the registry made the durable `node-<id>`, and a worker reads it
from its beginning (`durable_reader`), so the fold sees every commit once, in order.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from weft_contracts.commit import Commit, Recorded
from weft_contracts.ids import EventId, NodeId
from weft_contracts.permissions import WORKER_PAYLOAD_BYTES
from weft_contracts.topology import worker_durable

from weft_eventlog import ordered_consumer
from weft_eventlog.durable_reader import DurableReader
from weft_eventlog.errors import LogUnavailable
from weft_eventlog.log import EventLog, Trace

_PULL = 200
_ECHO = 5.0
"""Seconds that a worker waits for its own commit to come back."""
_REMEMBERED = 4096

Fold = Callable[[Recorded], Awaitable[None] | None]


class WorkerLog:
    """One worker's view of the log."""

    def __init__(self, client: Client, node: NodeId, trace: Trace | None = None) -> None:
        self._node = node
        self._reader = DurableReader(client, worker_durable(node).name, batch=_PULL, from_start=True)
        self._log = EventLog(client, actor=node, find=self._find_in_own_part, trace=trace)
        self._own: dict[EventId, int] = {}
        """Sequences of the last folded commits, to tell a conflict from a retry that had landed."""

    @property
    def position(self) -> int:
        """Sequence of the last folded commit of this worker's part."""
        return self._reader.position

    @position.setter
    def position(self, sequence: int) -> None:
        """Go on behind what was folded through another connection."""
        self._reader.position = sequence

    @property
    def caught_up(self) -> asyncio.Event:
        """Set once all that there was at the start is folded."""
        return self._reader.caught_up

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

        async def take(message: Msg) -> None:
            await self._take(message, fold)

        await self._reader.run(take)

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

    async def _take(self, message: Msg, fold: Fold) -> None:
        commit = ordered_consumer.recorded(message)
        if commit is None:
            return
        self._own[commit.event_id] = commit.sequence
        if len(self._own) > _REMEMBERED:
            del self._own[next(iter(self._own))]
        outcome = fold(commit)
        if inspect.isawaitable(outcome):
            await outcome
