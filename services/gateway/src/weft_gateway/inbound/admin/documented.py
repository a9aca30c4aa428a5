"""What the API's document says of answers that have no JSON of their own: problem bodies and streams."""

from typing import Any

from weft_gateway.domain.problems import PROBLEM

_PROBLEM: dict[str, Any] = {
    "description": "A problem, in one sentence",
    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}
"""For the routers of the API's routes."""
EVENT_STREAM: dict[str, Any] = {
    "content": {"text/event-stream": {"schema": {"type": "string", "description": "Server-sent events, as they come."}}}
}
"""For the answer of a route that can be followed."""
