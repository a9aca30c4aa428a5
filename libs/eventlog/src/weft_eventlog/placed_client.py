"""A client whose pull subscriptions read an observer's place, for libraries that know JetStream by nats-py.

Their own would ask for the consumer's state first, which the server answers in no other account, would hand on what is
delivered again behind what came later, and would never learn that the place is gone.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingYet
from nats.js.api import ConsumerConfig
from nats.js.client import JetStreamContext
from weft_contracts.topology import OBSERVER_AHEAD

from weft_eventlog.durable_reader import DurableReader
from weft_eventlog.message_sanitizer import sanitize_messages
from weft_eventlog.one_socket import OneSocket

FIRST_AGAIN_S, MOST_AGAIN_S = 0.5, 60.0
"""Seconds until what was not acknowledged is given again, at first and at most, unless it says how many."""

_TURNS = 3
"""Of the loop, in which the reader takes up what was settled just now."""


class PlacedMsg(Msg):
    """One message at the place. It is given again until it is acknowledged, and nothing comes before it."""

    settled: asyncio.Future[float | None]
    """None: it is done with; else the seconds until it is to be given again. A negative number: the usual ones."""

    @classmethod
    def of(cls, message: Msg) -> "PlacedMsg":
        """The same message, not settled yet."""
        made = cls(message._client, message.subject, message.reply, message.data, message.headers)
        made.settled = asyncio.get_running_loop().create_future()
        return made

    async def ack(self) -> None:
        """It is done with: the place moves on."""
        self._settle(None)

    async def term(self) -> None:
        """It can't be done with, and is passed over."""
        self._settle(None)

    async def nak(self, delay: int | float | None = None) -> None:
        """Give it again, after a while."""
        self._settle(-1.0 if delay is None else delay)

    def _settle(self, again: float | None) -> None:
        self._check_reply()
        self._ackd = True
        if not self.settled.done():
            self.settled.set_result(again)


class PlacedSubscription:
    """What nats-py's pull subscription is to who fetches one message after the other."""

    def __init__(
        self,
        client: OneSocket,
        durable: str,
        on_there: Callable[[bool], None],
        on_died: Callable[[BaseException], None],
    ) -> None:
        self._reader = DurableReader(client, durable, batch=OBSERVER_AHEAD, from_start=False, on_there=on_there)
        self._next: asyncio.Queue[PlacedMsg] = asyncio.Queue(1)
        self._on_died = on_died
        self._reading = asyncio.create_task(self._reader.run(self._give))
        self._reading.add_done_callback(self._ended)

    async def fetch(self, batch: int = 1, timeout: float | None = None) -> list[Msg]:
        """The next message, once the one before is settled. Raises nats-py's TimeoutError where none comes in time."""
        assert batch == 1, "they come one after the other"
        try:
            async with asyncio.timeout(timeout):
                return [await self._next.get()]
        except TimeoutError:
            raise NothingYet from None

    async def unsubscribe(self, limit: int = 0) -> None:
        """Read no more. What is settled is acknowledged first."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    def _ended(self, reading: asyncio.Task[None]) -> None:
        if not reading.cancelled() and (error := reading.exception()) is not None:
            self._on_died(error)

    async def _give(self, message: Msg) -> None:
        usual = FIRST_AGAIN_S
        while True:
            given = PlacedMsg.of(message)
            await self._next.put(given)
            again = await given.settled
            if again is None:
                return
            await asyncio.sleep(again if again >= 0 else usual * random.uniform(0.5, 1.0))
            usual = min(2 * usual, MOST_AGAIN_S)


class PlacedJetStream(JetStreamContext):
    """JetStream as an observer has it: its place, and nothing else."""

    def __init__(
        self,
        client: OneSocket,
        on_there: Callable[[bool], None],
        on_died: Callable[[BaseException], None],
        **options: Any,
    ) -> None:
        super().__init__(client, **options)
        self._client = client
        self._on_there = on_there
        self._on_died = on_died

    async def pull_subscribe(  # pyright: ignore[reportIncompatibleMethodOverride]  # it quacks enough
        self,
        subject: str,
        durable: str | None = None,
        stream: str | None = None,
        config: ConsumerConfig | None = None,
        **options: Any,
    ) -> PlacedSubscription:
        """Read the place of this name."""
        assert durable is not None
        return PlacedSubscription(self._client, durable, self._on_there, self._on_died)


class PlacedClient(OneSocket):
    """Its JetStream reads places."""

    def __init__(
        self, on_there: Callable[[bool], None], on_died: Callable[[BaseException], None] = lambda error: None
    ) -> None:
        """`on_died` is told of an error that has ended the reading of a place: nothing comes from it any more."""
        super().__init__()
        self._on_there = on_there
        self._on_died = on_died
        sanitize_messages(self)

    def jetstream(self, **options: Any) -> JetStreamContext:
        """See PlacedJetStream."""
        return PlacedJetStream(self, self._on_there, self._on_died, **options)
