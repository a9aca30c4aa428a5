"""Reading the log in order: one ordered push consumer, decoded message by message."""

import contextlib
from collections.abc import AsyncIterator, Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import ConsumerConfig, DeliverPolicy
from nats.js.client import JetStreamContext
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError
from weft_contracts.codec import decode
from weft_contracts.commit import Recorded
from weft_contracts.subjects import BadSubject
from weft_contracts.topology import EVENTS

from weft_eventlog import delivered
from weft_eventlog.errors import LogUnavailable, unavailable
from weft_eventlog.message_buffer import MessageBuffer, bypass_client_queue

QUEUE = 10_000
"""Messages that wait between the callback and the fold."""
_READ_AHEAD = 1000
"""The same of a read that ends: what the server sends beyond its end is thrown away."""
_TAKEN = 64
"""Messages that are taken at once."""
_SILENCE = 5.0


def consumer_config(filters: Sequence[str], after: int) -> ConsumerConfig:
    """An ordered consumer that starts behind a sequence and says every second that it lives."""
    return ConsumerConfig(
        filter_subjects=list(filters),
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        inactive_threshold=30,
    )


def stream_sequence(message: Msg) -> int:
    """Log position, from the reply subject: 20 times cheaper than building the metadata."""
    return int(message.reply.split(".")[5])


def consumer_sequence(message: Msg) -> int:
    return int(message.reply.split(".")[6])


def pending(message: Msg) -> int:
    """Messages behind this one that the consumer has still to deliver."""
    return int(message.reply.split(".")[8])


def recorded(message: Msg) -> Recorded | None:
    """A message as a commit; None for a subject that the log doesn't have."""
    parts = message.reply.split(".")
    try:
        return decode(message.subject, int(parts[5]), message.data, message.headers, int(parts[7]) / 1e9)
    except BadSubject:
        return None


async def read_between(
    client: Client, js: JetStreamContext, filters: Sequence[str], *, after: int, upto: int | None
) -> AsyncIterator[Recorded]:
    """The commits of some filters after a sequence up to another; see EventLog.read."""
    buffer = MessageBuffer(client, _READ_AHEAD)
    try:
        if upto is None:
            upto = int((await js.stream_info(EVENTS.name)).state.last_seq)
        if upto <= after:
            return
        subscription = await subscribe(client, js, buffer, filters, after)
    except (NatsError, JetStreamError) as error:
        raise LogUnavailable(f"the log can't be read: {error!r}") from error
    try:
        # What the consumer says is pending is not to be trusted for the end: it may have delivered all that it has
        # while nothing has come through yet, and on three servers it may sit on one that lags.
        more = await _anything_between(js, filters, after, upto)
        while more:
            try:
                messages = await buffer.take(_TAKEN, _SILENCE)
            except TimeoutError:
                raise LogUnavailable(f"the log fell silent after {after}, {upto} is wanted") from None
            for message in messages:
                after = message.sequence
                if after > upto:
                    return
                if (commit := delivered.recorded(message)) is not None:
                    yield commit
            more = after < upto and (messages[-1].pending > 0 or await _anything_between(js, filters, after, upto))
    finally:
        with contextlib.suppress(NatsError, JetStreamError):
            await subscription.unsubscribe()


async def subscribe(
    client: Client, js: JetStreamContext, buffer: MessageBuffer, filters: Sequence[str], after: int
) -> JetStreamContext.PushSubscription:
    """An ordered push subscription from behind a sequence into a buffer."""
    bypass_client_queue(client)
    return await js.subscribe(
        "",
        stream=EVENTS.name,
        ordered_consumer=True,
        cb=buffer.put,
        idle_heartbeat=1.0,
        config=consumer_config(filters, after),
    )


async def next_sequence(js: JetStreamContext, filters: Sequence[str], after: int) -> int | None:
    """Where the first commit of some filters after a sequence stands, by the leader; None if there is none.

    Raises LogUnavailable.
    """
    found: list[int] = []
    with unavailable(f"the log can't be read after {after}"):
        for filter in filters:
            try:
                message = await js.get_msg(EVENTS.name, seq=after + 1, subject=filter, next=True)
            except NotFoundError:
                continue
            found.append(message.seq or 0)
    return min(found, default=None)


async def _anything_between(js: JetStreamContext, filters: Sequence[str], after: int, upto: int) -> bool:
    following = await next_sequence(js, filters, after)
    return following is not None and following <= upto
