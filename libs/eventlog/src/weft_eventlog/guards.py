"""Guards and conflicts as JetStream says them."""

import re

from weft_contracts.commit import Guard

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_FILTER = "Nats-Expected-Last-Subject-Sequence-Subject"
BATCH_ID = "Nats-Batch-Id"
BATCH_SEQUENCE = "Nats-Batch-Sequence"
BATCH_COMMIT = "Nats-Batch-Commit"

WRONG_LAST_SEQUENCE = frozenset({10071})
"""Lost against a settled write."""
IN_FLIGHT = frozenset({10158, 10164})
"""Of three servers: our own earlier try, or any write under the same guard, is proposed and not settled. It may be lost
with its leader or be our own, so it decides nothing: whoever asks again is told how it ended."""
DUPLICATE_IN_BATCH = 10201
BUSY = frozenset({10167, 10176, 10210})
"""Too much waits to be stored; a batch of which not every message was taken, as too many were open or it came too
slowly; too many are open. Nothing landed: it may be sent again."""
FULL = frozenset({10023, 10047, 10077})
"""No resources, no storage, the stream's own limit."""

_SEQUENCE = re.compile(r"wrong last sequence: (\d+)")


def guard_headers(guard: Guard | None) -> dict[str, str]:
    """The headers that make an append hold only under its guard."""
    if guard is None:
        return {}
    return {EXPECTED: str(guard.sequence), EXPECTED_FILTER: guard.aggregate.filter}


def actual_sequence(description: str) -> int | None:
    """The sequence that a conflict's description names, where it names one."""
    found = _SEQUENCE.search(description)
    return int(found.group(1)) if found else None
