"""A message on its way to a fold: what the subscription's connection read, before anything is made of it."""

import re
from typing import NamedTuple

from nats.aio.msg import Msg
from weft_contracts import headers as h
from weft_contracts.codec import actor_of, decode, decode_facts
from weft_contracts.commit import Recorded
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import BadSubject, parse

from weft_eventlog import quick_headers

_VALUE = r": ([!-~]{0,200})\r\n"
_ORDINARY = re.compile(
    (
        rf"NATS/1\.0\r\n{h.EVENT_ID}{_VALUE}{h.CORRELATION_ID}{_VALUE}{h.ACTOR}{_VALUE}{h.SCHEMA}: [!-~]*\r\n"
        rf"(?:{h.CAUSATION_ID}{_VALUE})?(?:Nats-(?:Expected|Batch)-[!-9;-~]*: [!-~]*\r\n)*\r\n"
    ).encode()
)
"""The headers of nearly every commit, in the order in which `encode_headers` writes them. All else is read slowly."""
_HEADER_LINE = len(b"NATS/1.0\r\n")
_NONE: frozenset[str] = frozenset()


class Delivered(NamedTuple):
    """One message of an ordered consumer."""

    subject: str
    sequence: int
    """Log position."""
    place: int
    """The consumer's own count of deliveries, from 1."""
    at_ns: int
    """When the log took it, in nanoseconds since the epoch."""
    pending: int
    """Messages behind this one that the consumer has still to deliver."""
    body: bytes
    headers: bytes
    """As they came, `NATS/1.0` first; empty for none."""


def delivered(subject: str, tokens: list[str], body: bytes, headers: bytes) -> Delivered:
    """A message from the tokens of its reply subject, which hold its place in the log."""
    return Delivered(subject, int(tokens[5]), int(tokens[6]), int(tokens[7]), int(tokens[8]), body, headers)


def of_message(message: Msg) -> Delivered:
    """A message that the client has read whole; its headers are written down again."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in (message.headers or {}).items())
    headers = f"NATS/1.0\r\n{lines}\r\n".encode() if lines else b""
    return delivered(message.subject, message.reply.split("."), message.data, headers)


def recorded(message: Delivered) -> Recorded | None:
    """A message as a commit; None for a subject that the log doesn't have."""
    found = _ORDINARY.fullmatch(message.headers)
    try:
        if found is None:
            headers = quick_headers.parse(message.headers[_HEADER_LINE:])
            return decode(message.subject, message.sequence, message.body, headers, message.at_ns / 1e9)
        aggregate, said = parse(message.subject)
    except BadSubject:
        return None
    event, correlation, actor, causation = found.groups()
    return Recorded(
        message.sequence,
        aggregate,
        decode_facts(aggregate.kind, message.body, _NONE, said),
        EventId(event.decode()),
        CorrelationId(correlation.decode()),
        EventId(causation.decode()) if causation else None,
        actor_of(aggregate, actor.decode()),
        message.at_ns / 1e9,
    )
