"""Spans of an engine's requests: only where `WEFT_OTLP_ENDPOINT` is set, and only then is OpenTelemetry imported."""

import asyncio
import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, Ending, Engine, EngineFacts, EngineLoad, TellsIds, Ticket

from weft_engine.launch import Launch

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

ENDPOINT: Final = "WEFT_OTLP_ENDPOINT"
EXPORT_S: Final = 5.0
FLUSH_S: Final = 1.0
CORRELATION_ID: Final = "weft.correlation_id"

log = logging.getLogger("weft.engine")


def traced(engine: Engine, launch: Launch, endpoint: str | None) -> Engine:
    """The engine with a span for each request, sent to an endpoint by OTLP over HTTP; as it is without one."""
    if not endpoint:
        return engine
    try:
        return TracedEngine(engine, launch, _provider(launch, endpoint))
    except ImportError as missing:
        log.warning("no traces: install weft-engine[traces]", extra={"missing": str(missing)})
        return engine


class TracedEngine:
    """An engine whose requests are spans, each under the trace parent that came with it."""

    def __init__(self, engine: Engine, launch: Launch, provider: "TracerProvider") -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._engine = engine
        self._launch = launch
        self._provider = provider
        self._tracer = provider.get_tracer("weft")
        self._propagator = TraceContextTextMapPropagator()

    @property
    def facts(self) -> EngineFacts:
        """See Engine."""
        return self._engine.facts

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        """See Engine. The span ends with the ticket."""
        from opentelemetry.context import Context

        parent = self._propagator.extract({"traceparent": request.traceparent}, context=Context())
        span = self._tracer.start_span("submit", parent)
        span.set_attributes(
            {
                CORRELATION_ID: request.correlation_id,
                "weft.replica": self._launch.replica,
                "weft.incarnation": self._launch.incarnation,
                "gen_ai.request.max_tokens": request.max_tokens,
            }
        )
        ticket.on_end = lambda ending: _end(span, ending)
        self._engine.submit(request, prompt, ticket)

    def cancel(self, ticket: Ticket) -> None:
        """See Engine."""
        self._engine.cancel(ticket)

    def load(self) -> EngineLoad:
        """See Engine."""
        return self._engine.load()

    async def count(self, prompt: pb.Prompt) -> int:
        """See Engine."""
        return await self._engine.count(prompt)

    async def prompt_ids(self, prompt: pb.Prompt) -> list[int] | None:
        """See TellsIds."""
        return await self._engine.prompt_ids(prompt) if isinstance(self._engine, TellsIds) else None

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        """See Engine."""
        return await self._engine.embed(inputs)

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        """See Engine."""
        return await self._engine.rerank(query, texts)

    async def close(self) -> None:
        """See Engine. What waits to be sent has a second."""
        await self._engine.close()
        await asyncio.to_thread(self._provider.force_flush, int(FLUSH_S * 1000))


def _provider(launch: Launch, endpoint: str) -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    whole = endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + "/v1/traces"
    resource = Resource.create({"service.name": "weft-engine", "service.instance.id": launch.incarnation})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=whole, timeout=EXPORT_S)))
    return provider


def _end(span: "Span", ending: Ending) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attributes(
        {
            "gen_ai.usage.input_tokens": ending.prompt_tokens,
            "gen_ai.usage.output_tokens": ending.output_tokens,
            "gen_ai.response.finish_reasons": [pb.Finish.Name(ending.finish)],
        }
    )
    if ending.finish == pb.FINISH_ERROR:
        span.set_status(Status(StatusCode.ERROR, ending.error[:200]))
    span.end()
