"""A fact as a log record of OpenTelemetry."""

import re
import time
from collections.abc import Mapping

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from weft_observer.happened import Happened

ERRORS = frozenset(("run.failed", "artifact.refused"))
"""What failed, and stays so unless somebody does something."""
WARNINGS = frozenset(
    (
        "mesh.brake_set",
        "node.unhealthy",
        "node.offline",
        "node.cut_off",
        "request.rejected",
        "run.degraded",
        "run.exceeded",
    )
)
"""What is not as it should be, and may mend by itself."""
_TRACEPARENT = re.compile("[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


def record(happened: Happened) -> LogRecord:
    """Its body is the fact; what it stands in are attributes. With the commit's trace, where it has one."""
    commit = happened.commit
    severity = _severity(happened.name)
    attributes: Mapping[str, str | int] = {
        "weft.subject": commit.aggregate.subject(happened.fact.type),
        "weft.kind": commit.aggregate.kind,
        "weft.key": commit.aggregate.key,
        "weft.sequence": commit.sequence,
        "weft.index": happened.index,
        "weft.actor": commit.actor,
        "weft.event_id": commit.event_id,
        "weft.correlation_id": commit.correlation_id,
    }
    return LogRecord(
        timestamp=round(commit.at * 1e6) * 1_000,
        observed_timestamp=time.time_ns(),
        context=set_span_in_context(NonRecordingSpan(_span(commit.traceparent))),
        severity_number=severity,
        severity_text=severity.name,
        body=happened.fact.model_dump(mode="json"),
        attributes=attributes,
        event_name=f"weft.{happened.name}",
    )


def _severity(name: str) -> SeverityNumber:
    return SeverityNumber.ERROR if name in ERRORS else SeverityNumber.WARN if name in WARNINGS else SeverityNumber.INFO


def _span(traceparent: str) -> SpanContext:
    """The span that a W3C trace parent names; one that is not valid for none."""
    if not (found := _TRACEPARENT.fullmatch(traceparent)):
        return SpanContext(0, 0, is_remote=True)
    trace, span, flags = (int(each, 16) for each in found.groups())
    return SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(flags))
