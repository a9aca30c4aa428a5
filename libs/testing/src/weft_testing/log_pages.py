"""The event log as a gateway hands it out, read back as commits."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
from weft_contracts.codec import decode_facts
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact, Unreadable
from weft_contracts.ids import CorrelationId, EventId
from weft_contracts.subjects import KINDS, Aggregate, Kind

_PAGE = 1000
_UNREADABLE: str = Unreadable.model_fields["type"].default


def commits(client: httpx.Client, url: str) -> Iterator[Recorded]:
    """The log from its beginning. Raises httpx.HTTPError."""
    after: int | None = 0
    while after is not None:
        said = client.get(f"{url}/api/events", params={"after": after, "limit": _PAGE}, timeout=30)
        page = said.raise_for_status().json()
        yield from map(recorded, page["items"])
        after = page["next"]


def recorded(event: dict[str, Any]) -> Recorded:
    """One event of a page as a commit."""
    kind = KINDS[event["kind"]]
    causation = event.get("causation_id")
    return Recorded(
        sequence=event["sequence"],
        aggregate=Aggregate(kind, event["key"]),
        facts=_facts(kind, event["facts"]),
        event_id=EventId(event["event_id"]),
        correlation_id=CorrelationId(event["correlation_id"]),
        causation_id=EventId(causation) if causation else None,
        actor=event["actor"],
        at=event["at"],
    )


def _facts(kind: Kind, told: list[dict[str, Any]]) -> tuple[Fact, ...]:
    """A page says why a commit can't be read in a fact's place."""
    if [_UNREADABLE] == [fact["type"] for fact in told]:
        return (Unreadable(why=told[0]["why"]),)
    return decode_facts(kind, json.dumps(told).encode(), said=told[0]["type"] if told else "")
