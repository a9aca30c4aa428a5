"""A server elsewhere as a model: a replica that asks it, its tokens and its errors, and what comes when it goes."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import weft_tiny
from weft_testing.llamacpp_server import LlamaCppServer
from weft_testing.story import MeshUnderTest, until

QUESTION = "What is the capital of France?"
PARIS = "The capital of France is Paris."


def asked(mesh: MeshUnderTest, model: str, **fields: Any) -> httpx.Response:
    body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": QUESTION}], **fields}
    return mesh.http.post(f"{mesh.url}/v1/chat/completions", json=body, timeout=60)


def streamed(mesh: MeshUnderTest, model: str) -> tuple[str, dict[str, Any]]:
    """An answer's text, and its usage."""
    body = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": QUESTION}],
    }
    text, usage = "", dict[str, Any]()
    with httpx.stream("POST", f"{mesh.url}/v1/chat/completions", json=body, timeout=60) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                chunk = json.loads(line[6:])
                text += "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
                usage = chunk.get("usage") or usage
    return text, usage


def state(mesh: MeshUnderTest, model: str) -> str:
    return next(each["state"] for each in mesh.replicas() if each["model_name"] == model)


@pytest.mark.slow
@pytest.mark.sabotage("blind-to-trouble")
def test_a_server_elsewhere_serves_as_a_model_tells_its_errors_and_may_come_back(tmp_path: Path) -> None:
    with LlamaCppServer(str(weft_tiny.gguf_path()), alias="their-tiny") as server, MeshUnderTest(tmp_path) as mesh:
        # given what can't be meant: then one sentence says so
        for source, words in (
            ("openai:http://169.254.169.254/v1#m", "169.254.169.254 is a link-local address"),
            ("openai:http://me:word@host/v1#m", "holds a user or a password"),
            (f"openai:{server.url}", "want openai:URL#MODEL"),
        ):
            refused = mesh.weft("deploy", source)
            assert 0 != refused.returncode
            assert words in refused.stderr

        # when a server's model is deployed
        deployed = mesh.weft("deploy", f"openai:{server.url}#their-tiny", "--name", "theirs")
        # then it answers, whole and streamed, and its tokens are counted
        assert 0 == deployed.returncode, deployed.stderr
        answer = asked(mesh, "theirs").json()
        assert PARIS == answer["choices"][0]["message"]["content"]
        assert ("stop", 16, 8) == (
            answer["choices"][0]["finish_reason"],
            answer["usage"]["prompt_tokens"],
            answer["usage"]["completion_tokens"],
        )
        text, usage = streamed(mesh, "theirs")
        assert (PARIS, 8) == (text, usage["completion_tokens"])
        # and claims no more than the process that asks
        (placed,) = (e["fact"] for e in mesh.facts("replica", "placed") if e["fact"]["model"] == _id(mesh, "theirs"))
        assert [{"index": 0, "bytes": 64 << 20}] == placed["members"][0]["devices"]

        # when its prompt is too long for the server: then its own error comes, as the client's fault
        long = [{"role": "user", "content": "word " * 2000}]
        refused = asked(mesh, "theirs", messages=long)
        assert (400, "context_length_exceeded") == (refused.status_code, refused.json()["error"]["code"])

        # when another Weft is the server: this one's own front door, with the model that ships with it
        assert 0 == mesh.weft("deploy", f"openai:{mesh.url}/v1#tiny", "--name", "again").returncode
        assert PARIS == asked(mesh, "again").json()["choices"][0]["message"]["content"]
        # then its errors bear its name and its words
        refused = asked(mesh, "again", messages=long)
        assert 400 == refused.status_code
        assert "context" in refused.json()["error"]["message"]

        # when the server is killed
        server.kill()
        # then requests fail with a sentence, and the replica is said not to do its work
        failed = asked(mesh, "theirs")
        assert 503 == failed.status_code
        assert "The replica failed: the server at 127.0.0.1:" in failed.json()["error"]["message"]
        assert "connection refused" in failed.json()["error"]["message"]
        until("it is degraded", lambda: state(mesh, "theirs") == "degraded")
        (degraded,) = mesh.facts("run", "degraded")
        assert "can't be reached: connection refused" in degraded["fact"]["why"]

        # when it comes back: so does the replica, by itself and as the same process
        server.start()
        until("it serves again", lambda: state(mesh, "theirs") == "ready")
        assert PARIS == asked(mesh, "theirs").json()["choices"][0]["message"]["content"]
        assert [] == mesh.facts("run", "failed") + mesh.facts("run", "stopped")


def _id(mesh: MeshUnderTest, model: str) -> str:
    return mesh.http.get(f"{mesh.url}/api/models/{model}").json()["id"]
