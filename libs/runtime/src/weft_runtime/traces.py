"""Traces by OpenTelemetry: off, and costing nothing, until an OTLP endpoint is set."""

from opentelemetry import propagate, trace


def configure(service: str, instance: str, endpoint: str | None) -> None:
    """Send this process's traces to an endpoint by OTLP over HTTP. None: keep them nowhere."""
    if endpoint is None:
        return
    # imported here: half a second of CPU that a mesh without a collector should not pay
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": f"weft-{service}", "service.instance.id": instance})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)


def tracer() -> trace.Tracer:
    """The process's tracer."""
    return trace.get_tracer("weft")


def traceparent() -> str:
    """The current span as a W3C trace parent; empty where no span is recorded."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent", "")
