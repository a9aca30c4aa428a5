"""A quicker reading of message headers than the client's own: 3 µs instead of 18 for a guarded commit's seven.

The client looks at each character of each name; over a million commits that was 40 % of a fold. It offers a compiled
parser as an extra, whose present version answers lists where the client wants strings.
"""

from typing import Any

from nats.aio.client import Client
from weft_contracts import headers as h

from weft_eventlog import guards as g

_SPACE = " \t\n\r\x0b\x0c"
_KNOWN = frozenset(
    {
        h.EVENT_ID,
        h.CORRELATION_ID,
        h.CAUSATION_ID,
        h.ACTOR,
        h.SCHEMA,
        h.SKIPPABLE,
        h.TRACEPARENT,
        g.EXPECTED,
        g.EXPECTED_FILTER,
        g.BATCH_ID,
        g.BATCH_SEQUENCE,
        g.BATCH_COMMIT,
    }
)
"""Names that need no second look."""


def parse(raw: bytes) -> dict[str, str]:
    """`Name: value` lines to a dict, as the client does it; other lines are passed over."""
    found: dict[str, str] = {}
    known = _KNOWN
    for line in raw.decode("utf-8", "replace").split("\r\n"):
        name, colon, value = line.partition(":")
        if not colon:
            continue
        if name not in known:
            name = name.strip(_SPACE)
            if not name.isascii() or len(name.split(None, 1)) > 1:
                continue
        found[name] = value.strip(_SPACE)
    return found


def use_quick_headers(client: Client) -> None:
    """Let this client read headers the quick way."""
    seam: Any = client
    seam._parse_header_lines = parse
