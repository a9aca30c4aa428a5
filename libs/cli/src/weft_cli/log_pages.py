"""The event log as the gateway hands it out: pages of JSON, read back as commits."""

import json
from collections.abc import Iterator
from typing import Any, cast

from weft_contracts.codec import decode_facts
from weft_contracts.commit import Recorded
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import KINDS, Aggregate

from weft_cli.client import Gateway
from weft_cli.failure import Failure

PAGE = 1000


def pages(gateway: Gateway, after: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Pages of events as JSON, from behind a position up to the log's present end."""
    while True:
        answer = gateway.get("/api/events", after=after, limit=PAGE)
        items = cast("list[dict[str, Any]]", answer["items"])
        if items:
            yield items
        if answer["next"] is None:
            return
        after = int(answer["next"])


def commits(gateway: Gateway) -> Iterator[Recorded]:
    """The log from its beginning, as commits."""
    for page in pages(gateway):
        for each in page:
            yield recorded(each)


def recorded(event: dict[str, Any]) -> Recorded:
    """One event of a page as a commit. Raises Failure for one that isn't shaped like that."""
    try:
        kind = KINDS[event["kind"]]
        causation = event.get("causation_id")
        return Recorded(
            sequence=int(event["sequence"]),
            aggregate=Aggregate(kind, event["key"]),
            facts=decode_facts(kind, json.dumps(event["facts"]).encode()),
            event_id=EventId(event["event_id"]),
            correlation_id=CorrelationId(event["correlation_id"]),
            causation_id=EventId(causation) if causation else None,
            actor=str(event.get("actor", "")),
            at=float(event["at"]),
        )
    except (KeyError, TypeError, ValueError) as e:
        raise Failure(f"the gateway's events have a shape that this weft doesn't know ({e!r})") from e
