"""Reads a durable pull consumer of EVENTS from another account: in order, through three subjects and no others.

Who reads makes no consumers and may not even look at its own: it rewinds the durable, pulls, and acknowledges.
Anything out of order (a lost or a repeated delivery) rewinds it, so that every message is taken once, in order.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NothingCame
from weft_contracts.topology import EVENTS

from weft_eventlog import ordered_consumer
from weft_eventlog.cancelling import end_if_cancelled
from weft_eventlog.errors import LogUnavailable

_API = "$JS.API.CONSUMER"
_LONG_POLL = 20.0
"""Seconds that the server holds an empty pull open."""
_HEARTBEAT = 2.0
"""Seconds between the server's signs that an empty pull still stands: a restarted server has forgotten it."""
_HEARD = "100"
_NOBODY = "503"
_SURE = 3
"""Rewinds in a row that nobody answered until there is no such durable: a server that starts is silent, too."""
_ANSWER_S = 5.0
_PAUSE = 0.5
_log: Any = structlog.get_logger(part="weft.durable_reader")

Take = Callable[[Msg], Awaitable[None]]


def _status(message: Msg) -> str:
    """The status that a message without a reply bears; empty for none."""
    return (message.headers or {}).get("Status", "")


class DurableReader:
    """One reader of one durable. Two at a time rewind it under each other's feet."""

    def __init__(
        self,
        client: Client,
        durable: str,
        *,
        batch: int,
        from_start: bool,
        on_there: Callable[[bool], None] = lambda there: None,
    ) -> None:
        """`from_start`: it begins at the durable's first message; else behind what was acknowledged.

        `on_there` is called when it has become clear that the server has no such durable, and when there is one again.
        """
        self._client = client
        self._durable = durable
        self._batch = batch
        self._from_start = from_start
        self._on_there = on_there
        self._there = True
        self._unheard = 0
        """Rewinds in a row to which nobody answered though the server was there."""
        self.position = 0
        """Sequence of the last message that was taken."""
        self.caught_up = asyncio.Event()
        self._expected = 0
        """The durable's own count of deliveries that must come next; 0: any."""

    async def run(self, take: Take) -> None:
        """Give `take` what there is, then what comes; what it has taken is acknowledged. Ends only by
        cancellation, or by an error of `take`."""
        rewound = False
        while True:
            end_if_cancelled()
            try:
                if not rewound:
                    await self._rewind()
                    rewound = True
                rewound = await self._pull(take)
            except (NatsError, LogUnavailable) as error:
                _log.info("log not reached", durable=self._durable, error=repr(error))
                rewound = False
                await asyncio.sleep(_PAUSE)

    async def _rewind(self) -> None:
        """Let the durable begin behind the last message that was taken, or that was acknowledged by an earlier one."""
        known = self._from_start or self.position
        request = json.dumps({"seq": self.position + 1}).encode() if known else b""
        try:
            reply = await self._client.request(
                f"{_API}.RESET.{EVENTS.name}.{self._durable}", request, timeout=_ANSWER_S
            )
        except NothingCame:
            await self._look_whether_it_is_there()
            raise
        answer: dict[str, Any] = json.loads(reply.data)
        if "error" in answer:
            raise LogUnavailable(f"durable {self._durable} can't be rewound: {answer['error']}")
        self._unheard = 0
        self._say(there=True)
        self._expected = 0

    async def _look_whether_it_is_there(self) -> None:
        """The server is silent about rewinding what it doesn't have, but says at once that nobody takes a pull."""
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox)
        try:
            await self._client.publish(
                f"{_API}.MSG.NEXT.{EVENTS.name}.{self._durable}", b'{"batch":1,"no_wait":true}', reply=inbox
            )
            nobody = _status(await subscription.next_msg(timeout=_ANSWER_S)) == _NOBODY
        finally:
            await subscription.unsubscribe()
        self._unheard = self._unheard + 1 if nobody else 0
        if self._unheard == _SURE:
            self._say(there=False)

    def _say(self, *, there: bool) -> None:
        if there is not self._there:
            self._there = there
            self._on_there(there)

    async def _pull(self, take: Take) -> bool:
        """One pull: take what comes. False if the durable must be rewound."""
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox)
        request: dict[str, Any] = {
            "batch": self._batch,
            "expires": int(_LONG_POLL * 1e9),
            "idle_heartbeat": int(_HEARTBEAT * 1e9),
        }
        if not self.caught_up.is_set():
            request = {"batch": self._batch, "no_wait": True}
        left = self._batch
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
                if not await self._taken(message, take):
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
        _log.info("pull ended", durable=self._durable, status=code)
        return False

    async def _taken(self, message: Msg, take: Take) -> bool:
        sequence = ordered_consumer.stream_sequence(message)
        place = ordered_consumer.consumer_sequence(message)
        if self._expected and place != self._expected:
            return False
        self._expected = place + 1
        if sequence > self.position:
            await take(message)
        self.position = max(self.position, sequence)
        await self._client.publish(message.reply, b"+ACK")
        if ordered_consumer.pending(message) == 0:
            self.caught_up.set()
        return True
