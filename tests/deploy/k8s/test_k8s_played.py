"""Pods of the manifests as real containers, by `podman kube play`: they get ready, answer, and leave without a loss."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from weft_testing.story import until

from .cluster import Cluster

pytestmark = pytest.mark.slow

SLOW_MODEL: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 64,
    "engine_args": {"ms_per_token": 50},
}
TOKENS = 260
"""Of each stream: 13 s, more than WEFT_STOP_TIMEOUT, so that a worker which only stops would cut them."""
STREAMS = 8


def asked(cluster: Cluster, model: str, words: str, **more: Any) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": words}], **more}
    answer = cluster.http.post("/v1/chat/completions", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()["choices"][0]


def streamed(cluster: Cluster, model: str) -> tuple[int, str]:
    """How many tokens came, and how it ended."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "Tell me a story."}],
        "max_tokens": TOKENS,
        "ignore_eos": True,
        "temperature": 1,  # drawn, so no other replica could go on with it
        "seed": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    usage, last = 0, ""
    with cluster.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                said: dict[str, Any] = json.loads(line.removeprefix("data: "))
                counted: dict[str, int] = said.get("usage") or {}
                usage = counted.get("completion_tokens", usage)
            last = line or last
    return usage, last


def deployed(cluster: Cluster, name: str, spec: dict[str, Any]) -> str:
    """Deploy it, and wait until a replica is ready; its node's name."""
    answer = cluster.http.post("/api/models", json={"name": name, "spec": spec})
    assert 201 == answer.status_code, answer.text
    return until(f"{name} serves", lambda: home(cluster, name), 60)


def home(cluster: Cluster, model: str) -> str | None:
    status = cluster.http.get("/api/status").json()
    ready = [each for each in status["replicas"] if each["model_name"] == model and each["state"] == "ready"]
    return ready[0]["node_name"] if ready else None


def nodes(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Id and state of each, by name."""
    return {each["name"]: (each["id"], each["state"]) for each in cluster.http.get("/api/status").json()["nodes"]}


def test_the_pods_of_an_overlay_serve_and_one_that_is_drained_loses_no_request_and_comes_back_as_itself(
    cluster: Cluster,
) -> None:
    # given pods as the manifests have them: each is ready by its own probes, and both workers were let in by the token
    until("both are let in", lambda: ["healthy"] * 2 == [state for _, state in nodes(cluster).values()], 30)
    # then a model answers
    deployed(cluster, "tiny", {"source": {"kind": "builtin", "name": "tiny"}, "engine": "llama.cpp"})
    assert "Paris" in asked(cluster, "tiny", "What is the capital of France?")["message"]["content"]
    # when the pod that runs one is evicted while it streams
    leaving = deployed(cluster, "slow", SLOW_MODEL)
    before = nodes(cluster)
    with ThreadPoolExecutor(STREAMS) as pool:
        streams = [pool.submit(streamed, cluster, "slow") for _ in range(STREAMS)]
        until("all stream", lambda: running(cluster) >= STREAMS, 20)
        status = cluster.stop(leaving)
        ended = [each.result(timeout=60) for each in streams]
    # then its worker ended by itself, every stream is whole, and the model is served elsewhere
    assert 0 == status
    assert [(TOKENS, "data: [DONE]")] * STREAMS == ended
    until("it serves elsewhere", lambda: home(cluster, "slow") not in (None, leaving), 30)
    # and its pod comes back as the node that it was, and takes replicas again
    cluster.play(leaving)
    cluster.ready(leaving)
    until("it is back", lambda: nodes(cluster)[leaving] == (before[leaving][0], "healthy"), 30)


def running(cluster: Cluster) -> int:
    text = cluster.http.get("/metrics").text
    found = re.search(r"^weft_gateway_running_requests (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0
