"""A collector on loopback: it takes OTLP over HTTP as any collector does, and keeps the spans and the log records."""

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

TRACES, LOGS = "/v1/traces", "/v1/logs"
CORRELATION_ID = "weft.correlation_id"


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """One span as it arrived."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    """Empty for a trace's first."""
    attributes: dict[str, Any]
    start_ns: int
    end_ns: int

    @property
    def correlation_id(self) -> str | None:
        return self.attributes.get(CORRELATION_ID)


@dataclass(frozen=True, slots=True)
class CollectedRecord:
    """One log record as it arrived."""

    service: str
    event: str
    severity: str
    body: Any
    trace_id: str
    """Empty for none."""
    attributes: dict[str, Any]
    at_ns: int


class Collector:
    """A context manager; `url` is what WEFT_OTLP_ENDPOINT names."""

    def __init__(self) -> None:
        self._spans: list[CollectedSpan] = []
        self._records: list[CollectedRecord] = []
        self.refusing = False
        """Whether it answers that it can't take anything just now."""
        self._lock = threading.Lock()
        collector = self

        class CollectorHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path not in (TRACES, LOGS) or self.headers["content-type"] != "application/x-protobuf":
                    self._answer(404, b"")
                    return
                if collector.refusing:
                    self._answer(503, b"")
                    return
                plain = gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
                if self.path == LOGS:
                    collector._take_records(plain)
                    self._answer(200, ExportLogsServiceResponse().SerializeToString())
                    return
                collector._take(plain)
                self._answer(200, ExportTraceServiceResponse().SerializeToString())

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), CollectorHandler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def spans(self) -> list[CollectedSpan]:
        """All that came so far."""
        with self._lock:
            return list(self._spans)

    @property
    def records(self) -> list[CollectedRecord]:
        """All log records that came so far."""
        with self._lock:
            return list(self._records)

    def of_trace(self, trace_id: str) -> list[CollectedSpan]:
        """The spans of one trace so far."""
        return [span for span in self.spans if span.trace_id == trace_id]

    def _take(self, body: bytes) -> None:
        found = spans_of(body)
        with self._lock:
            self._spans.extend(found)

    def _take_records(self, body: bytes) -> None:
        request = ExportLogsServiceRequest.FromString(body)
        for resource in request.resource_logs:
            service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
            found = [
                CollectedRecord(
                    service,
                    record.event_name,
                    record.severity_text,
                    _value(record.body),
                    record.trace_id.hex(),
                    {each.key: _value(each.value) for each in record.attributes},
                    record.time_unix_nano,
                )
                for scope in resource.scope_logs
                for record in scope.log_records
            ]
            with self._lock:
                self._records.extend(found)


def spans_of(body: bytes) -> list[CollectedSpan]:
    """What one post to `/v1/traces` carries."""
    found: list[CollectedSpan] = []
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
        found += [
            CollectedSpan(
                service,
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                {each.key: _value(each.value) for each in span.attributes},
                span.start_time_unix_nano,
                span.end_time_unix_nano,
            )
            for scope in resource.scope_spans
            for span in scope.spans
        ]
    return found


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: _value(each.value) for each in value.kvlist_value.values}
    return getattr(value, kind) if kind else None
