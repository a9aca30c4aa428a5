"""The first answer: from `up` to Paris through all six services, and every step of it in the log."""

import json
import subprocess
from typing import Any

import openai
import pytest
from weft_testing.story import MeshUnderTest


@pytest.mark.sabotage("wrong-template")
def test_the_printed_curl_line_answers_paris_from_llama_cpp(calm_mesh: MeshUnderTest) -> None:
    # given the line that `up` printed
    said = (calm_mesh.folder / "launcher.out").read_text()
    line = next(line.strip() for line in said.splitlines() if line.strip().startswith("curl "))
    # when a user pastes it
    ran = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, check=True)
    # then
    assert "Paris" in json.loads(ran.stdout)["choices"][0]["message"]["content"]
    assert {"llama.cpp"} == {run["fact"]["engine"] for run in calm_mesh.facts("run", "ready")}
    # and on the processor, whatever devices this machine has: for them an engine might have to be built first
    specs = [each["fact"]["spec"] for each in calm_mesh.facts("model", "spec_accepted")]
    assert {"gpu_layers": 0} == next(each for each in specs if each["source"].get("name") == "tiny")["engine_args"]


@pytest.mark.sabotage("lost-causation")
def test_the_causes_lead_from_the_ready_run_back_to_the_admins_request(calm_mesh: MeshUnderTest) -> None:
    # given an answered request, which names the run that answered
    response = calm_mesh.chat("What is the capital of France?", headers={"x-weft-explain": "1"})
    by_id = {event["event_id"]: event for event in calm_mesh.events()}
    # when walking back
    walked = [by_id[response.headers["x-weft-run-event"]]]
    while walked[-1]["causation_id"]:
        walked.append(by_id[walked[-1]["causation_id"]])
    # then every id resolves, and the chain is the one that the design draws
    steps = [(event["kind"], event["facts"][-1]["type"]) for event in walked]
    assert [
        ("run", "ready"),
        ("run", "loading"),
        ("node", "assigned"),
        ("model", "scaled"),
        ("model", "spec_accepted"),
        ("request", "deploy_requested"),
    ] == steps
    # and one correlation id joins them
    assert 1 == len({event["correlation_id"] for event in walked})


@pytest.mark.sabotage("lost-correlation")
def test_one_correlation_id_joins_the_http_request_the_events_and_the_engines_log(calm_mesh: MeshUnderTest) -> None:
    # when a request to the model and an admin's request bear ids of their own
    asked = calm_mesh.http.post(
        f"{calm_mesh.url}/v1/chat/completions",
        json={"model": "tiny", "messages": [{"role": "user", "content": "Hello"}]},
        headers={"x-request-id": "story-chat-1"},
    )
    refused = calm_mesh.http.post(
        f"{calm_mesh.url}/api/models",
        json={"name": "nowhere", "spec": {"source": {"kind": "path", "path": "/nowhere.gguf"}, "engine": "llama.cpp"}},
        headers={"x-request-id": "story-admin-1"},
    )
    # then the answers, the events and the logs bear them
    assert "story-chat-1" == asked.headers["x-request-id"]
    assert 422 == refused.status_code
    kinds = {e["kind"] for e in calm_mesh.events() if e["correlation_id"] == "story-admin-1"}
    assert {"request", "inspection", "machine"} == kinds
    assert "story-chat-1" in (calm_mesh.state / "logs" / "gateway.log").read_text()
    # and the deploy's id has reached the engine
    (deployed,) = {run["correlation_id"] for run in calm_mesh.facts("run", "ready")}
    hosts = [path.read_text() for path in (calm_mesh.state / "workers").rglob("host-*.log")]
    assert any(f'"correlation_id": "{deployed}"' in text for text in hosts)


@pytest.mark.sabotage("no-stream-end")
def test_the_official_client_lists_chats_and_streams(calm_mesh: MeshUnderTest) -> None:
    client: Any = openai.OpenAI(base_url=f"{calm_mesh.url}/v1", api_key="none", max_retries=0, timeout=30)
    assert "tiny" in [model.id for model in client.models.list()]
    question = [{"role": "user", "content": "What is the capital of Japan?"}]
    answer = client.chat.completions.create(model="tiny", messages=question, temperature=0)
    assert "The capital of Japan is Tokyo." == answer.choices[0].message.content
    chunks = list(client.chat.completions.create(model="tiny", messages=question, temperature=0, stream=True))
    assert answer.choices[0].message.content == "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert "stop" == chunks[-1].choices[0].finish_reason
    client.close()
