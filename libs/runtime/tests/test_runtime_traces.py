"""Traces: recorded and sent where an endpoint is set; elsewhere OpenTelemetry is not even imported."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from weft_contracts import subjects
from weft_contracts.ids import NodeId
from weft_runtime import traces
from weft_testing.collector import Collector
from weft_testing.mesh_server import MeshServer
from weft_testing.service_process import mesh_settings, running
from weft_testing.waiting import until

SMALL = str(Path(__file__).parent / "small_service.py")
CLIENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE = CLIENT.split("-")[1]

WITHOUT = """
import sys, json
import weft_runtime.service, weft_eventlog, {module}
from weft_runtime import traces
traces.configure("small", "small-1", None)
assert not traces.on() and traces.now_ns() == 0
traces.flush()
print(json.dumps([name for name in sys.modules if name.startswith({never!r})]))
"""


ALL = ("opentelemetry.trace", "opentelemetry.sdk", "opentelemetry.exporter")


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("weft_runtime.decider", ALL),
        ("weft_worker_agent.app", ALL),
        ("weft_engine.host", ALL),
        # FastAPI itself imports the bare interfaces, which record nothing; the rest is ours to keep away
        ("weft_gateway.app", (*ALL[1:], "weft_gateway.inbound.http.traced")),
    ],
)
def test_without_an_endpoint_no_tracing_library_is_imported(module: str, never: tuple[str, ...]) -> None:
    code = WITHOUT.format(module=module, never=never)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ("[]\n", "") == (done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("endpoint", "posts_to"),
    [
        ("http://c:4318", "http://c:4318/v1/traces"),
        ("http://c:4318/", "http://c:4318/v1/traces"),
        ("https://c/otlp/v1/traces", "https://c/otlp/v1/traces"),
    ],
)
def test_an_endpoint_without_a_path_is_a_collectors_root(endpoint: str, posts_to: str) -> None:
    assert posts_to == traces.address(endpoint)


async def test_a_decision_and_its_append_follow_the_event_that_asked(mesh_server: MeshServer, tmp_path: Path) -> None:
    with Collector() as collector:
        settings = mesh_settings(mesh_server, "reconciler") | {"WEFT_OTLP_ENDPOINT": collector.url}
        async with running([SMALL, "traced", CLIENT], tmp_path, settings) as service:
            await service.ready()

            async def probe() -> bool:
                return "appended" in service.text()

            await until(probe)
            assert 0 == await service.terminate()
            (said,) = [line for line in service.lines() if line["event"] == "appended"]
        # its last spans were sent before it ended
        spans = collector.of_trace(TRACE)
    by_name = {span.name: span for span in spans}
    assert {"decide", "append inspection.requested"} == by_name.keys()
    decide, append = by_name["decide"], by_name["append inspection.requested"]
    assert (CLIENT.split("-")[2], decide.span_id) == (decide.parent_id, append.parent_id)
    assert {"c-traced"} == {span.correlation_id for span in spans}
    assert {"weft-reconciler"} == {span.service for span in spans}
    assert decide.start_ns <= append.start_ns <= append.end_ns <= decide.end_ns
    # who reads the event goes on from the append
    assert f"00-{TRACE}-{append.span_id}-01" == said["traceparent"]


def test_the_span_of_another_trace_is_linked_and_keeps_its_header() -> None:
    from weft_contracts.codec import encode_headers
    from weft_contracts.commit import Cause, Commit
    from weft_contracts.facts.inspection import Requested
    from weft_contracts.ids import CorrelationId, EventId, InspectionId

    other = "00-11111111111111111111111111111111-2222222222222222-01"
    aggregate = subjects.inspection(NodeId("n-a"), InspectionId("i-1"))
    fact = Requested(source="path:/m", engine="simulated")

    def header(cause: str, span: str) -> Any:
        commit = Commit(aggregate, (fact,), None, Cause(CorrelationId("c"), None, cause))
        return encode_headers(commit, EventId("e"), "a", span).get("traceparent")

    assert CLIENT == header("", CLIENT)
    assert CLIENT == header(CLIENT[:36] + "0000000000000001-01", CLIENT)
    assert other == header(other, CLIENT)
    assert other == header(other, "")
    assert header("", "") is None
