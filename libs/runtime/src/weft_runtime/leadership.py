"""Which instance of a service decides: a lease under an expected sequence. It only saves double work; the
guards on commits make decisions right."""

import asyncio
import contextlib
import time
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError
from nats.js.errors import Error as JetStreamError
from weft_contracts.signals import Lease
from weft_contracts.subjects import service_lease
from weft_contracts.topology import LEASES
from weft_eventlog import LogUnavailable, apply_stream
from weft_eventlog.cancelling import end_if_cancelled
from weft_eventlog.guards import EXPECTED

from weft_runtime.logs import get_logger

RENEWAL = 2.0
"""Seconds between renewals."""
SILENCE = 5.0
"""Seconds without a renewal, on one's own clock, after which a standby takes over."""
_log: Any = get_logger("weft.leadership")


class Leadership:
    """One instance's stand for the lease of its service. Run `run` as a root task."""

    def __init__(self, client: Client, service: str, instance: str) -> None:
        self._client = client
        self._js = client.jetstream(timeout=2.0)
        self._subject = service_lease(service)
        self._instance = instance
        self._sequence = 0
        self._renewed = 0.0
        self._seen: tuple[int, float] = (-1, 0.0)
        self._released = False
        self._acting = asyncio.Lock()
        self.changed = asyncio.Event()
        """Set whenever this instance starts to lead."""

    @property
    def held(self) -> bool:
        """Whether this instance may decide: it leads, and said so within the last 5 s."""
        return self._sequence > 0 and time.monotonic() - self._renewed < SILENCE

    async def run(self) -> None:
        """Renew, or wait for the leader's silence, for ever."""
        while True:
            end_if_cancelled()
            try:
                async with self._acting:
                    await (self._renew() if self._sequence else self._stand())
            except NoStreamResponseError:
                await self._make_stream()
            except (NatsError, JetStreamError) as error:
                _log.debug("lease not renewed", error=repr(error))
            await asyncio.sleep(RENEWAL if self._sequence else RENEWAL / 4)

    async def release(self) -> None:
        """Let a standby take over at once, and stand no more."""
        self._released = True
        async with self._acting:
            sequence, self._sequence = self._sequence, 0
            if sequence:
                with contextlib.suppress(NatsError, JetStreamError):
                    await self._put("", sequence)

    async def _put(self, holder: str, expected: int) -> int:
        body = Lease(holder=holder).model_dump_json().encode()
        ack = await self._js.publish(self._subject, body, stream=LEASES.name, headers={EXPECTED: str(expected)})
        return int(ack.seq)

    async def _renew(self) -> None:
        try:
            self._sequence = await self._put(self._instance, self._sequence)
            self._renewed = time.monotonic()
        except APIError as error:
            _log.warning("lease lost", error=error.description)
            self._sequence = 0

    async def _stand(self) -> None:
        """Take the lease if nobody holds it, its holder let go, or it has been silent for too long."""
        if self._released:
            return
        sequence, holder = await self._last()
        if sequence != self._seen[0]:
            self._seen = (sequence, time.monotonic())
        free = sequence == 0 or holder in ("", self._instance)
        if not free and time.monotonic() - self._seen[1] < SILENCE:
            return
        try:
            self._sequence = await self._put(self._instance, sequence)
        except APIError:
            return
        self._renewed = time.monotonic()
        self.changed.set()
        _log.info("leads", since=self._sequence)

    async def _last(self) -> tuple[int, str]:
        try:
            message = await self._js.get_last_msg(LEASES.name, self._subject)
        except NotFoundError as error:
            if error.err_code == 10059:  # the stream itself is not there
                await self._make_stream()
            return 0, ""
        return int(message.seq or 0), Lease.model_validate_json(message.data or b'{"holder":""}').holder

    async def _make_stream(self) -> None:
        """Memory streams are gone after a restart of the server: whoever meets that makes them again."""
        self._sequence = 0
        try:
            await apply_stream(self._client, LEASES, servers=max(1, len(self._client.servers)))
        except LogUnavailable as error:
            _log.info("leases can't be kept", error=str(error))
