"""Story: with an OTLP endpoint, one trace tells what a request did, over HTTP, gRPC and the log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from weft_testing.collector import CollectedSpan, Collector
from weft_testing.story import MeshUnderTest, until

pytestmark = pytest.mark.slow

Traced = tuple[MeshUnderTest, Collector]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """A mesh that sends its traces to a collector."""
    folder: Path = tmp_path_factory.mktemp("traced")
    with (
        Collector() as collector,
        MeshUnderTest(folder, WEFT_OTLP_ENDPOINT=collector.url, WEFT_LOG_ATTRIBUTION="1") as mesh,
    ):
        yield mesh, collector


def parent(trace: str) -> dict[str, str]:
    return {"traceparent": f"00-{trace}-00000000000000aa-01"}


def one(spans: list[CollectedSpan], service: str, name: str) -> CollectedSpan:
    (span,) = [span for span in spans if (span.service, span.name) == (service, name)]
    return span


def wait_for(collector: Collector, trace: str, *wanted: tuple[str, str]) -> list[CollectedSpan]:
    """A trace's spans, once those (service and name) are among them: each process sends every few seconds."""

    def look() -> list[CollectedSpan] | None:
        spans = collector.of_trace(trace)
        return spans if set(wanted) <= {(span.service, span.name) for span in spans} else None

    return until(f"the spans {wanted}", look, 60.0)


@pytest.mark.sabotage("alone-at-the-engine")
@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_is_one_trace_from_the_client_to_the_engine(traced: Traced, stream: bool) -> None:
    mesh, collector = traced
    trace, id = f"{'ab' * 15}{int(stream):02x}", f"chat-{stream}"
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "stream": stream,
        "metadata": {"run": "7"},
        "user": "ann",
    }
    answer = mesh.http.post(
        f"{mesh.url}/v1/chat/completions",
        json=body,
        headers=parent(trace) | {"x-request-id": id, "x-weft-explain": "1"},
    )
    assert (200, True) == (answer.status_code, "Paris" in answer.text or stream)

    spans = wait_for(collector, trace, ("weft-gateway", "POST /v1/chat/completions"), ("weft-engine", "submit"))
    front, engine = one(spans, "weft-gateway", "POST /v1/chat/completions"), one(spans, "weft-engine", "submit")
    assert ("00000000000000aa", front.span_id) == (front.parent_id, engine.parent_id)
    assert {id} == {span.correlation_id for span in spans}
    assert (200, True) == (
        front.attributes["http.response.status_code"],
        engine.attributes["gen_ai.usage.output_tokens"] > 0,
    )
    assert front.attributes["weft.replica"] == engine.attributes["weft.replica"] == answer.headers["x-weft-replica"]
    assert ("7", 32) == (front.attributes["weft.metadata.run"], len(front.attributes["weft.user"]))
    assert front.start_ns <= engine.start_ns <= engine.end_ns <= front.end_ns


@pytest.mark.sabotage("lost-trace")
def test_a_deploy_is_one_trace_through_every_service_that_had_a_part_in_it(traced: Traced) -> None:
    mesh, collector = traced
    trace, id = "cd" * 16, "deploy-1"
    body = {"name": "traced", "spec": {"source": {"kind": "simulated"}, "engine": "simulated"}}
    made = mesh.http.post(f"{mesh.url}/api/models", json=body, headers=parent(trace) | {"x-request-id": id})
    assert 201 == made.status_code, made.text

    way = [
        ("weft-gateway", "POST /api/models"),
        ("weft-gateway", "append request.deploy_requested"),
        ("weft-reconciler", "decide"),
        ("weft-scheduler", "decide"),
        ("weft-worker-agent", "append run.ready"),
    ]
    spans = wait_for(collector, trace, *way)
    assert {id} == {span.correlation_id for span in spans}
    # each span follows from another of the same trace, back to the client's own
    by_id = {span.span_id: span for span in spans}
    assert ["00000000000000aa"] == [s.parent_id for s in spans if s.parent_id not in by_id]
    ready = one(spans, "weft-worker-agent", "append run.ready")
    assert ready.attributes["weft.aggregate"].startswith("run.")
    walked = [ready]
    while walked[-1].parent_id in by_id:
        walked.append(by_id[walked[-1].parent_id])
    names = [(span.service, span.name) for span in reversed(walked)]
    assert way == list(dict.fromkeys(each for each in names if each in way))  # the reconciler may decide twice
