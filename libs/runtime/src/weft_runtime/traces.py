"""Traces by OpenTelemetry: off, and not even imported, until an OTLP endpoint is set.

Every span bears the correlation id where there is one. A trace crosses HTTP and gRPC by its W3C trace parent, and the
log by the header `traceparent`: a rule's span follows the event that asked for it.
"""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from weft_contracts.commit import Commit, Decision

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

CORRELATION_ID = "weft.correlation_id"
EXPORT_S = 5.0
"""Seconds that one export may take; what can't be sent is dropped."""
FLUSH_S = 2.0
"""Seconds that the last spans may take at the end of the process."""
_MOST_LINKS = 32

Attribute = str | int | float | bool
Kind = Literal["internal", "server", "producer"]

_provider: "TracerProvider | None" = None
_tracer: "Tracer | None" = None


def configure(service: str, instance: str, endpoint: str | None) -> None:
    """Send this process's traces to an endpoint by OTLP over HTTP. None: there are none."""
    global _provider, _tracer
    if endpoint is None:
        return
    # imported here: half a second of CPU that a mesh without a collector should not pay
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": f"weft-{service}", "service.instance.id": instance})
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)  # its own wait is not bounded: see flush
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address(endpoint), timeout=EXPORT_S)))
    _tracer = _provider.get_tracer("weft")


def address(endpoint: str) -> str:
    """Where spans are posted to: an endpoint without a path is a collector's root."""
    return endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + "/v1/traces"


def on() -> bool:
    """Whether spans are recorded. Nothing else here may be called where they are not."""
    return _tracer is not None


def flush() -> None:
    """Send what waits, for at most `FLUSH_S`. Blocks; does nothing where no spans are recorded."""
    if _provider is not None:
        _provider.force_flush(int(FLUSH_S * 1000))


def begin(
    name: str,
    kind: Kind = "internal",
    *,
    parent: str = "",
    correlation_id: str = "",
    attributes: Mapping[str, Attribute] | None = None,
    links: Sequence[str] = (),
    start_ns: int | None = None,
) -> "Span":
    """Start a span under a W3C trace parent; without one under the current span, if there is any. End it yourself.

    `start_ns`: nanoseconds since the epoch, for what began before.
    """
    from opentelemetry import trace

    assert _tracer is not None, "no spans are recorded here: ask on() first"
    kinds = {
        "internal": trace.SpanKind.INTERNAL,
        "server": trace.SpanKind.SERVER,
        "producer": trace.SpanKind.PRODUCER,
    }
    others = [trace.get_current_span(_context(each)).get_span_context() for each in links]
    span = _tracer.start_span(
        name,
        _context(parent) if parent else None,
        kinds[kind],
        attributes=dict(attributes or {}),
        links=[trace.Link(each) for each in others if each.is_valid],
        start_time=start_ns,
    )
    if correlation_id:
        span.set_attribute(CORRELATION_ID, correlation_id)
    return span


def traceparent_of(span: "Span") -> str:
    """A span as the trace parent of what follows from it."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


@contextmanager
def during(span: "Span") -> Generator["Span"]:
    """Make it the current span; an error that passes through is recorded on it, and it ends."""
    from opentelemetry import trace

    with trace.use_span(span, end_on_exit=True):
        yield span


@contextmanager
def appending(commits: Sequence[Commit]) -> Generator[str]:
    """A span around an append; gives the trace parent for the commits' headers. What `EventLog` takes as `trace`."""
    from opentelemetry import trace

    first, *others = commits
    current = trace.get_current_span().get_span_context()
    attributes: dict[str, Attribute] = {
        "messaging.system": "nats",
        "messaging.batch.message_count": len(commits),
        "weft.aggregate": str(first.aggregate),
        "weft.facts": ", ".join(fact.type for fact in first.facts[:8]),
    }
    span = begin(
        f"append {first.aggregate.kind}.{first.facts[0].type}",
        "producer",
        parent="" if current.is_valid else first.cause.traceparent,
        correlation_id=first.cause.correlation_id,
        attributes=attributes,
        links=_others(first, others),
    )
    with during(span):
        yield traceparent_of(span)


@contextmanager
def deciding(decision: Decision, began_ns: int) -> Generator[None]:
    """A span from a rule's beginning (nanoseconds since the epoch) to the end of its decision's append."""
    first, *others = decision.commits
    attributes = {"weft.why": decision.why} if decision.why else {}
    span = begin(
        "decide",
        parent=first.cause.traceparent,
        correlation_id=first.cause.correlation_id,
        attributes=attributes,
        links=_others(first, others),
        start_ns=began_ns,
    )
    with during(span):
        yield


def now_ns() -> int:
    """The time, for `start_ns`; 0 where no spans are recorded."""
    return time.time_ns() if _tracer is not None else 0


def _others(first: Commit, commits: Sequence[Commit]) -> list[str]:
    """The further traces that commits belong to: a batch may answer many requests."""
    causes = dict.fromkeys(commit.cause.traceparent for commit in commits)
    return [each for each in causes if each and each != first.cause.traceparent][:_MOST_LINKS]


def _context(traceparent: str) -> "Context":
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent}, context=Context())
