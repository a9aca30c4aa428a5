"""Reading the log in order: one ordered push consumer, decoded message by message."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import ConsumerConfig, DeliverPolicy
from nats.js.client import JetStreamContext
from nats.js.errors import Error as JetStreamError
from weft_contracts.codec import decode
from weft_contracts.commit import Recorded
from weft_contracts.subjects import BadSubject
from weft_contracts.topology import EVENTS

from weft_eventlog.errors import LogUnavailable

QUEUE = 10_000
"""Messages that wait between the callback and the fold."""
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
    """A message as a commit; None for a subject that is none of the log's."""
    parts = message.reply.split(".")
    try:
        return decode(message.subject, int(parts[5]), message.data, message.headers, int(parts[7]) / 1e9)
    except BadSubject:
        return None


async def read_between(
    js: JetStreamContext, filters: Sequence[str], *, after: int, upto: int | None
) -> AsyncIterator[Recorded]:
    """The commits of some filters after a sequence up to another; see EventLog.read."""
    queue: asyncio.Queue[Msg] = asyncio.Queue(QUEUE)
    try:
        if upto is None:
            upto = int((await js.stream_info(EVENTS.name)).state.last_seq)
        if upto <= after:
            return
        subscription = await js.subscribe(
            "",
            stream=EVENTS.name,
            ordered_consumer=True,
            cb=queue.put,
            config=consumer_config(filters, after),
        )
    except (NatsError, JetStreamError) as error:
        raise LogUnavailable(f"the log can't be read: {error!r}") from error
    try:
        left = (await subscription.consumer_info()).num_pending or 0
        if left == 0 and queue.empty():
            return
        while True:
            try:
                message = await asyncio.wait_for(queue.get(), _SILENCE)
            except TimeoutError:
                raise LogUnavailable(f"the log fell silent after {after}, {upto} is wanted") from None
            after = stream_sequence(message)
            if after > upto:
                return
            commit = recorded(message)
            if commit is not None:
                yield commit
            if after == upto or pending(message) == 0:
                return
    finally:
        with contextlib.suppress(NatsError, JetStreamError):
            await subscription.unsubscribe()
