"""The gateway's client and the commands on it, against a small HTTP server that answers what a test says."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from weft_cli import locate
from weft_cli.app import app
from weft_cli.commands import models
from weft_client.failure import Exit, Failure
from weft_client.sources import name_for
from weft_embedded import run_file
from weft_embedded.state import State
from weft_testing.fake_gateway import FakeGateway

Weft = Callable[..., Any]


@pytest.fixture
def weft(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> Weft:
    """Runs a command against the fake gateway."""
    monkeypatch.setenv("WEFT_URL", fake.url)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_a_command_for_a_state_without_a_mesh_goes_to_no_other_mesh(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=f"no mesh runs on {tmp_path}") as refused:
        locate.gateway(tmp_path, None)
    assert Exit.NOT_RUNNING == refused.value.exit
    assert "http://10.0.0.1:80" == locate.gateway(tmp_path, "10.0.0.1:80").url


def test_bytes_that_are_no_text_are_refused_in_one_sentence(fake: FakeGateway, weft: Weft) -> None:
    refused = weft("chat", "-m", "tiny", "\udcff")
    assert "what was typed is no UTF-8 text, and nothing else can be sent" == str(refused.exception)
    assert [] == [each for each in fake.asked if each[0] == "POST"]


def test_an_empty_name_is_not_taken_for_none(fake: FakeGateway, weft: Weft) -> None:
    fake.answers["POST", "/api/models"] = (400, {"detail": "`name` does not fit"})
    refused = weft("deploy", "tiny", "--name", "")
    assert "--name does not fit" == str(refused.exception)
    assert "" == fake.asked[-1][2]["name"]


def test_a_spec_is_read_from_the_command_line() -> None:
    wanted = models.DeployOptions(None, None, ("rate=2.5", "fail=true", "word=true story", "n=3"), "2", 512, 4)
    assert {
        "source": {"kind": "simulated"},
        "engine": "simulated",
        "engine_args": {"rate": 2.5, "fail": True, "word": "true story", "n": 3},
        "min_replicas": 2,
        "max_replicas": 2,
        "context_tokens": 512,
        "concurrency": 4,
    } == models.spec("simulated", wanted)
    assert {"kind": "builtin", "name": "tiny"} == models.spec("tiny", models.DeployOptions())["source"]
    assert {"kind": "path", "path": "/m/llama.gguf"} == models.spec("/m/llama.gguf", models.DeployOptions())["source"]
    assert "llama" == name_for("/m/llama.gguf")


def test_a_spec_that_cant_be_meant_is_a_usage_error() -> None:
    with pytest.raises(Failure) as failure:
        models.spec("tiny", models.DeployOptions(engine_args=("x",)))
    assert Exit.USAGE == failure.value.exit


def test_chat_streams_an_answer_and_a_break_is_an_error(fake: FakeGateway, weft: Weft) -> None:
    def chunk(text: str) -> bytes:
        return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"

    fake.answers["GET", "/v1/models"] = (200, {"data": [{"id": "other"}, {"id": "tiny"}]})
    fake.answers["POST", "/v1/chat/completions"] = (200, chunk("Par") + chunk("is.") + b"data: [DONE]\n\n")
    answered = weft("chat", "-m", "tiny", "What is the capital of France?")
    assert (0, "Paris.\n") == (answered.exit_code, answered.stdout)
    assert "tiny" == fake.asked[-1][2]["model"]

    fake.answers["POST", "/v1/chat/completions"] = (200, chunk("Par"))
    broken = weft("chat", "-m", "tiny", "What is the capital of France?")
    assert isinstance(broken.exception, Failure)
    assert "broke off" in str(broken.exception)


def test_what_comes_through_a_pipe_is_one_question(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", fake.url)
    said = b'data: {"choices": [{"delta": {"content": "Yes."}}]}\n\ndata: [DONE]\n\n'
    fake.answers["POST", "/v1/chat/completions"] = (200, said)

    talked = CliRunner().invoke(app, ["chat", "-m", "tiny"], input="One?\nTwo?\n")

    assert (0, "Yes.\n") == (talked.exit_code, talked.stdout)
    assert ["One?\nTwo?"] == [turn["content"] for turn in fake.asked[-1][2]["messages"]]


def test_the_catalogue_is_listed_without_a_mesh() -> None:
    listed = CliRunner().invoke(app, ["events", "--catalogue"])
    assert 0 == listed.exit_code
    assert "node.assigned" in listed.stdout
    assert 0 == CliRunner().invoke(app, ["events", "--catalogue", "--json"]).exit_code


def test_wrong_usage_exits_with_2() -> None:
    assert 2 == CliRunner().invoke(app, ["deploy"]).exit_code
    assert 2 == CliRunner().invoke(app, ["up", "--workers", "65"]).exit_code


def status_of(model_state: str, wanted: int, ready: int) -> dict[str, Any]:
    stands = {"state": model_state, "reason": "why", "wanted": wanted, "ready": ready, "spec": {"engine": "simulated"}}
    return {
        "nodes": [],
        "models": [{"name": "m", "id": "m-1", "revision": 1, "digest": "d", **stands}],
        "replicas": [],
        "mesh": {"problems": []},
        "log": {"position": 1},
    }


@pytest.mark.parametrize(
    ("state", "wanted", "ready", "exit"),
    [("ready", 1, 1, Exit.OK), ("loading", 1, 0, Exit.NOT_READY), ("unservable", 0, 0, Exit.NOT_READY)],
)
def test_status_says_by_its_exit_whether_each_model_answers(
    fake: FakeGateway, weft: Weft, state: str, wanted: int, ready: int, exit: Exit
) -> None:
    fake.answers["GET", "/api/status"] = (200, status_of(state, wanted, ready))
    assert exit == weft("status").exit_code


@pytest.mark.parametrize(
    ("spec", "size", "words"),
    [
        ({"min_replicas": 2, "max_replicas": 2}, None, []),
        ({"min_replicas": 0, "max_replicas": 3}, None, ["0 to 3"]),
        ({"min_replicas": 1, "max_replicas": 0}, None, ["1 to any"]),
        ({"min_replicas": 1, "max_replicas": 1, "spread_all": True}, None, ["all that match"]),
        (
            {"min_replicas": 0, "max_replicas": 3},
            {"replicas": 0, "was": 2, "why": "nobody asked", "at": 1.0},
            ["0 to 3; 0 instead of 2: nobody asked"],
        ),
    ],
)
def test_status_says_how_many_replicas_a_model_may_have_and_why_it_has_as_many(
    fake: FakeGateway, weft: Weft, spec: dict[str, Any], size: Any, words: list[str]
) -> None:
    status = status_of("ready", 1, 1)
    status["models"][0] |= {"spec": {"engine": "simulated", **spec}, "size": size}
    fake.answers["GET", "/api/status"] = (200, status)
    row = next(line for line in weft("status").stdout.splitlines() if line.split()[:1] == ["m"])
    assert ["m", "ready", "1", "simulated", "1/1", "-", "why", *(words or ["-"])] == re.split(" {2,}", row.strip())


def test_status_says_why_files_and_prompts_are_not_had(fake: FakeGateway, weft: Weft) -> None:
    why = "tokenizer.json of m can't be had: node one can't be reached"
    wanted = {"files": "f1", "name": "m", "source": "hf:o/m", "node": "n-1", "node_name": "two", "state": "failed"}
    lacking = {"no_tokenizer": {"m-1": why}, "files_ahead": [{**wanted, "about": "the last try failed: no hub"}]}
    fake.answers["GET", "/api/status"] = (200, status_of("ready", 1, 1) | lacking)

    said = weft("status")

    assert 0 == said.exit_code, "its engine makes them"
    assert f"m has no tokenizer here: {why}" in said.stdout
    rows = [[word.strip() for word in line.split("  ") if word.strip()] for line in said.stdout.splitlines()]
    assert ["m", "two", "failed", "the last try failed: no hub"] in rows
    found = json.loads(weft("status", "--json").stdout)
    assert (why, "two") == (found["models"][0]["no_tokenizer"], found["files_ahead"][0]["node"])


def test_status_of_another_mesh_says_nothing_of_this_ones_processes(
    fake: FakeGateway, weft: Weft, tmp_path: Path
) -> None:
    # given a mesh that runs here, on another address
    own = State(tmp_path)
    own.prepare()
    run_file.new("http://127.0.0.1:1").write(own)
    fake.answers["GET", "/api/status"] = (200, status_of("ready", 1, 1))
    # when that of `WEFT_URL` is asked for
    seen = json.loads(weft("status", "--state", str(tmp_path), "--json").stdout)
    # then nothing is said of the one here
    assert (fake.url, None, []) == (seen["url"], seen["launcher"], seen["parts"])
    # and the one here still is, by its own address
    here = json.loads(weft("status", "--state", str(tmp_path), "--json", "--url", "http://127.0.0.1:1").stdout)
    assert os.getpid() == here["launcher"]
