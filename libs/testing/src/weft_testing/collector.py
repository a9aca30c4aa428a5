"""A collector of traces on loopback: it takes OTLP over HTTP as any collector does, and keeps the spans."""

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PATH = "/v1/traces"
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


class Collector:
    """A context manager; `url` is what WEFT_OTLP_ENDPOINT names."""

    def __init__(self) -> None:
        self._spans: list[CollectedSpan] = []
        self._lock = threading.Lock()
        collector = self

        class CollectorHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path != PATH or self.headers["content-type"] != "application/x-protobuf":
                    self._answer(404, b"")
                    return
                collector._take(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
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

    def of_trace(self, trace_id: str) -> list[CollectedSpan]:
        """The spans of one trace so far."""
        return [span for span in self.spans if span.trace_id == trace_id]

    def _take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
            found = [
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
            with self._lock:
                self._spans.extend(found)


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
