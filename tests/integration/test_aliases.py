"""A name over several models: the first answers while it is free, the next while that is busy or away."""

import threading
from typing import Any

import httpx
import pytest
from weft_testing.story import MeshUnderTest, until

SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated"}
SLOW = {"concurrency": 1, "engine_args": {"ms_per_token": 100}}


def asked(mesh: MeshUnderTest, model: str = "chat", **fields: Any) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, **fields}
    return mesh.http.post(f"{mesh.url}/v1/chat/completions", json=body, timeout=60, headers={"x-weft-explain": "1"})


@pytest.mark.slow
@pytest.mark.sabotage("alias-of-the-first-alone")
def test_an_alias_answers_by_its_first_model_that_is_free_and_goes_on_while_that_is_away(mesh: MeshUnderTest) -> None:
    # given one model here and another, which this mesh asks as it would ask any OpenAI server
    mesh.deploy("local", {**SIMULATED, **SLOW}).raise_for_status()
    until("local answers", lambda: len(mesh.ready_replicas("local")) == 1)
    elsewhere = mesh.weft("deploy", f"openai:{mesh.url}/v1#tiny", "--name", "cloud")
    assert 0 == elsewhere.returncode, elsewhere.stderr

    # when a name is let stand for both, in order
    done = mesh.weft("aliases", "set", "chat", "local", "cloud", "--in-order")
    assert 0 == done.returncode, done.stderr

    # then it stands among the models, and the first answers by its own name
    assert "chat" in [each["id"] for each in mesh.http.get(f"{mesh.url}/v1/models").json()["data"]]
    first = asked(mesh)
    assert (200, "local", "chat") == (first.status_code, first.json()["model"], first.headers["x-weft-alias"])

    # when the first is busy: then the other answers
    ids = {each["name"]: each["id"] for each in mesh.status()["models"]}
    long = threading.Thread(target=asked, args=(mesh, "local"), kwargs={"max_tokens": 60, "ignore_eos": True})
    long.start()
    until("local is busy", lambda: mesh.status()["requests"]["running"] == 1)
    assert "cloud" == asked(mesh).json()["model"]
    long.join()

    # and neither a model nor a removal may come between
    taken = mesh.deploy("chat", SIMULATED)
    assert (409, True) == (taken.status_code, "is an alias of local, cloud" in taken.text)
    kept = mesh.http.delete(f"{mesh.url}/api/models/local")
    assert (409, True) == (kept.status_code, "the alias chat stands for local" in kept.text)

    # when the first has no replica left: then the other answers, and every look says why
    mesh.deploy("local", {**SIMULATED, **SLOW, "min_replicas": 0}).raise_for_status()
    unload = f"{mesh.url}/api/nodes/worker-1/models/local/unload"
    mesh.http.post(unload, json={"deadline_s": 0}).raise_for_status()
    until("local is gone", lambda: not mesh.ready_replicas("local"))
    assert "cloud" == asked(mesh).json()["model"]
    told = mesh.weft("explain", "chat")
    assert 0 == told.returncode, told.stderr
    assert ["local", "1.", "0/0"] in [line.split()[:3] for line in told.stdout.splitlines()]
    shown = mesh.weft("status")
    assert ["chat", "cloud", "2.", "ready", "1/1"] in [line.split() for line in shown.stdout.splitlines()]

    # when it is taken away: then the name is free, and its models stay
    gone = mesh.weft("aliases", "remove", "chat")
    assert 0 == gone.returncode, gone.stderr
    assert 404 == asked(mesh).status_code
    assert {"local", "cloud"} <= {each["name"] for each in mesh.status()["models"]}
    (fact,) = mesh.facts("name", "aliased")
    assert [ids["local"], ids["cloud"]] == [each["model"] for each in fact["fact"]["targets"]]
