"""Bad input: the right status and one sentence, within seconds, and nothing loops."""

import struct
import time
from pathlib import Path
from typing import Any

import pytest
from weft_testing.story import MeshUnderTest, until

USER = [{"role": "user", "content": "Hello"}]
CHAT: list[tuple[str, Any, int, str]] = [
    ("unknown model", {"model": "gpt-9", "messages": USER}, 404, "tiny"),
    ("no messages", {"model": "tiny"}, 400, "messages"),
    ("empty messages", {"model": "tiny", "messages": []}, 400, "messages"),
    ("wrong type", {"model": "tiny", "messages": "hello"}, 400, "messages"),
    ("negative max_tokens", {"model": "tiny", "messages": USER, "max_tokens": -1}, 400, "max_tokens"),
    ("huge max_tokens", {"model": "tiny", "messages": USER, "max_tokens": 10**12}, 400, "max_tokens"),
    ("bad temperature", {"model": "tiny", "messages": USER, "temperature": "hot"}, 400, "temperature"),
    ("a field that is not honoured", {"model": "tiny", "messages": USER, "frobnicate": 1}, 400, "frobnicate"),
]
MARKS = {"a field that is not honoured": pytest.mark.sabotage("silent-fields")}
"""One case stands for its family when the sabotage is tried."""


@pytest.mark.parametrize(
    ("what", "body", "status", "names"),
    [pytest.param(*row, id=row[0], marks=MARKS.get(row[0], ())) for row in CHAT],
)
def test_a_bad_chat_request_gets_openais_error_with_one_sentence(
    what: str, body: Any, status: int, names: str, calm_mesh: MeshUnderTest
) -> None:
    response = calm_mesh.http.post(f"{calm_mesh.url}/v1/chat/completions", json=body)
    assert status == response.status_code, response.text
    assert names in response.json()["error"]["message"]


@pytest.mark.sabotage("no-body-limit")
def test_a_body_that_is_no_json_or_too_large_is_refused(calm_mesh: MeshUnderTest) -> None:
    url = f"{calm_mesh.url}/v1/chat/completions"
    headers = {"content-type": "application/json"}
    malformed = calm_mesh.http.post(url, content=b'{"model": "tiny", ', headers=headers)
    large = calm_mesh.http.post(url, content=b'{"x": "' + b"x" * (9 << 20) + b'"}', headers=headers)
    assert (400, 413) == (malformed.status_code, large.status_code)
    assert "JSON" in malformed.json()["error"]["message"]
    # and the front door still answers
    assert "Paris" in calm_mesh.ask()


@pytest.mark.sabotage("foreign-dialect")
def test_unknown_routes_and_wrong_methods_are_named_in_the_callers_dialect(calm_mesh: MeshUnderTest) -> None:
    get, post = calm_mesh.http.get, calm_mesh.http.post
    assert 404 == get(f"{calm_mesh.url}/v1/nothing").status_code
    assert get(f"{calm_mesh.url}/v1/nothing").json()["error"]["message"]
    assert 405 == get(f"{calm_mesh.url}/v1/chat/completions").status_code
    problem = post(f"{calm_mesh.url}/api/events", json={})
    assert 405 == problem.status_code
    assert problem.headers["content-type"].startswith("application/problem+json")
    assert problem.json()["detail"]


@pytest.mark.sabotage("trusting-inspection")
def test_a_file_that_no_engine_can_load_is_refused_with_its_reason_and_nothing_loops(
    calm_mesh: MeshUnderTest, tmp_path: Path
) -> None:
    # given three bad sources
    not_gguf = tmp_path / "cat.gguf"
    not_gguf.write_bytes(b"meow" * 1000)
    truncated = tmp_path / "short.gguf"
    truncated.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 5, 0) + b"\0" * 10)
    sources = {"cat": str(not_gguf), "short": str(truncated), "none": str(tmp_path / "none.gguf")}
    for name, path in sources.items():
        # when it is deployed
        began = time.monotonic()
        refused = calm_mesh.deploy(name, {"source": {"kind": "path", "path": path}, "engine": "llama.cpp"})
        # then the error says why, and soon
        assert 422 == refused.status_code, refused.text
        assert path in refused.text or name in refused.text
        assert time.monotonic() - began < 30  # the promise is seconds; this only bounds the wait
    # and nothing is tried again
    head = calm_mesh.status()["log"]["position"]
    time.sleep(3)
    looping = ("request", "inspection", "model", "replica", "run")
    assert [] == [event for event in calm_mesh.events(head) if event["kind"] in looping]


@pytest.mark.sabotage("no-capacity-check")
def test_a_model_that_fits_nowhere_says_what_is_missing_and_does_not_loop(shaken_mesh: MeshUnderTest) -> None:
    mesh = shaken_mesh
    # when
    spec = {
        "source": {"kind": "simulated"},
        "engine": "simulated",
        "engine_args": {"memory_bytes": 1 << 50},
    }
    mesh.deploy("whale", spec).raise_for_status()

    # then status and events name the reason
    def whales() -> list[dict[str, Any]]:
        return [replica for replica in mesh.replicas() if replica["model_name"] == "whale"]

    def reason() -> str | None:
        return next((r["reason"] for r in whales() if r["state"] == "unplaceable"), None)

    def refusals() -> list[dict[str, Any]]:
        ids = {replica["id"] for replica in whales()}
        return [each for each in mesh.facts("replica", "unplaceable") if each["key"] in ids]

    assert "GiB" in until("it is unplaceable", reason)
    # and a request for it is refused with a sentence
    response = mesh.chat("Hello", model="whale")
    assert 503 == response.status_code
    assert response.json()["error"]["message"]
    # and the log does not grow
    assert 1 == len(refusals())
    time.sleep(5)
    assert 1 == len(refusals())


@pytest.mark.sabotage("forgetful-keys")
def test_an_admins_request_sent_twice_with_one_key_makes_one_model(shaken_mesh: MeshUnderTest) -> None:
    mesh = shaken_mesh
    spec = {"source": {"kind": "simulated"}, "engine": "simulated"}
    first = mesh.deploy("once", spec, **{"idempotency-key": "story-key"})
    second = mesh.deploy("once", spec, **{"idempotency-key": "story-key"})
    other = mesh.deploy("twice", spec, **{"idempotency-key": "story-key"})
    assert (first.json()["request"], first.status_code) == (second.json()["request"], second.status_code)
    assert 422 == other.status_code
    assert 1 == len([e for e in mesh.facts("request", "deploy_requested") if e["fact"]["name"] == "once"])
