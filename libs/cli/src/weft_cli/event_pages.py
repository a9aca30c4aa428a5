"""The event log as the gateway hands it out: pages of JSON, read back as commits."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft_client import routes
from weft_client.failure import Failure
from weft_client.gateway import Gateway
from weft_contracts.codec import decode_facts
from weft_contracts.commit import Recorded
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import KINDS, Aggregate

if TYPE_CHECKING:
    from weft_api import Commit


def pages(gateway: Gateway, after: int = 0) -> "Iterator[list[Commit]]":
    """Pages of events as JSON, from behind a position up to the log's present end."""
    while True:
        answer = routes.commits(gateway, after)
        if answer["items"]:
            yield answer["items"]
        if answer["next"] is None:
            return
        after = answer["next"]


def commits(gateway: Gateway) -> Iterator[Recorded]:
    """The log from its beginning, as commits."""
    for page in pages(gateway):
        for each in page:
            yield recorded(each)


def recorded(event: "Commit") -> Recorded:
    """One event of a page as a commit. Raises Failure for one that isn't shaped like that."""
    try:
        kind = KINDS[event["kind"]]
        causation = event.get("causation_id")
        return Recorded(
            sequence=event["sequence"],
            aggregate=Aggregate(kind, event["key"]),
            facts=decode_facts(kind, json.dumps(event["facts"]).encode()),
            event_id=EventId(event["event_id"]),
            correlation_id=CorrelationId(event["correlation_id"]),
            causation_id=EventId(causation) if causation else None,
            actor=event["actor"],
            at=event["at"],
        )
    except (KeyError, TypeError, ValueError) as e:
        raise Failure(f"the gateway's events have a shape that this weft doesn't know ({e!r})") from e
