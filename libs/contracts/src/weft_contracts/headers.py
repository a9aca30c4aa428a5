"""A commit's metadata rides in headers; its body holds only the facts."""

EVENT_ID = "Nats-Msg-Id"
CORRELATION_ID = "Weft-Correlation"
CAUSATION_ID = "Weft-Causation"
ACTOR = "Weft-Actor"
SCHEMA = "Weft-Schema"
"""Version of the commit's own form, not of its facts."""
SKIPPABLE = "Weft-Skippable"
"""Comma-separated types of this commit's facts that a reader who doesn't know them may pass over."""
TRACEPARENT = "traceparent"

SCHEMA_VERSION = "1"
