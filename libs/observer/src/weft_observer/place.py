"""An observer's place in the log, as FastStream reads it."""

from typing import Any

from faststream import AckPolicy
from faststream.nats import JStream, NatsMessage, PullSub
from weft_contracts.codec import decode
from weft_contracts.commit import Recorded
from weft_contracts.subjects import BadSubject
from weft_contracts.topology import EVENTS, observer_durable


def place(name: str) -> dict[str, Any]:
    """What FastStream's `broker.subscriber` needs: commits come one after the other, as `Recorded`, and again while the
    handler fails. None is a message under a subject that this version's log doesn't have."""
    return {
        "subject": EVENTS.subjects[0],
        "stream": JStream(EVENTS.name, declare=False),
        "durable": observer_durable(name).name,
        "pull_sub": PullSub(),
        "ack_policy": AckPolicy.NACK_ON_ERROR,
        "decoder": _recorded,
        "no_reply": True,  # a worker writes its headers itself, and FastStream answers at what `reply_to` says
    }


async def _recorded(message: NatsMessage) -> Recorded | None:
    raw = message.raw_message
    parts = raw.reply.split(".")
    try:
        return decode(raw.subject, int(parts[5]), raw.data, raw.headers, int(parts[7]) / 1e9)
    except BadSubject:
        return None
