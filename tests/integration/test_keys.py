"""A mesh that asks for keys: who comes in and who doesn't, with clients and a browser as people have them."""

import json
import re
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from weft_testing.browser import Browser
from weft_testing.story import MeshUnderTest, until

NAME = "Ada of Accounting"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def locked_mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshUnderTest]:
    """A mesh where everybody needs a key. The story's own client shows the state's own."""
    mesh = MeshUnderTest(tmp_path_factory.mktemp("keys"), WEFT_REQUIRE_KEYS="1")
    try:
        mesh.up()
        mesh.http.headers["authorization"] = f"Bearer {(mesh.state / 'admin-key').read_text().strip()}"
        yield mesh
    finally:
        mesh.close()


def printed(mesh: MeshUnderTest) -> list[str]:
    """The secrets that `up` has printed so far."""
    return re.findall(r"^ *(weft-[0-9a-f]{8}-\S{43})$", (mesh.folder / "launcher.out").read_text(), re.MULTILINE)


def made(mesh: MeshUnderTest, *options: str) -> dict[str, Any]:
    """A new key, by the command line, which finds a key of its own on this machine."""
    done = mesh.weft("keys", "create", "--json", *options)
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def client(mesh: MeshUnderTest, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{mesh.url}/v1", api_key=key, max_retries=0)


def answer(asked: openai.OpenAI, model: str = "tiny") -> str:
    """To the question, by the official client."""
    said = asked.chat.completions.create(model=model, messages=QUESTION, temperature=0)  # pyright: ignore
    return said.choices[0].message.content or ""


@pytest.mark.sabotage("open-door")
def test_the_first_key_is_printed_once_and_without_a_key_nobody_comes_in(locked_mesh: MeshUnderTest) -> None:
    mesh = locked_mesh
    until("a key is printed", lambda: printed(mesh))
    # given what a stranger has: the address
    with httpx.Client(base_url=mesh.url, timeout=30) as stranger:
        for path in ("/v1/models", "/api/status", "/api/events", "/api/keys", "/metrics", "/openapi.json"):
            assert (path, 401) == (path, stranger.get(path).status_code)
        refused = stranger.post("/v1/chat/completions", json={"model": "tiny", "messages": QUESTION})
        assert (401, "invalid_api_key") == (refused.status_code, refused.json()["error"]["code"])
        problem = stranger.post("/api/models", json={"name": "x", "spec": {}})
        assert (401, "application/problem+json") == (problem.status_code, problem.headers["content-type"])
        # but probes, the page, and the way in for machines are there
        for path in ("/healthz", "/readyz", "/", "/page/main.js"):
            assert (path, 200) == (path, stranger.get(path).status_code)
        assert 400 == stranger.post("/api/node/register", json={}).status_code
    # when the official client shows the printed key, it is answered
    assert 1 == len(printed(mesh))
    assert "Paris" in answer(client(mesh, printed(mesh)[0]))
    with pytest.raises(openai.AuthenticationError):
        answer(client(mesh, "none"))
    # and commands on this machine find a key by themselves, but show it to no other address
    assert 0 == mesh.weft("status").returncode
    assert "Paris" in mesh.weft("chat", "-m", "tiny", QUESTION[0]["content"]).stdout
    port = mesh.url.rpartition(":")[2]
    elsewhere = mesh.weft("keys", "--url", f"http://localhost:{port}")
    assert (1, True) == (elsewhere.returncode, "key is needed" in elsewhere.stderr)
    # and what they change, they change under the key's id
    deployed = mesh.facts("request", "deploy_requested")[0]
    own = next(key for key in keys(mesh) if key["created_by"] == "gateway")
    assert own["id"] == deployed["actor"]
    # and the same state prints no second one
    mesh.down()
    mesh.up()
    until("it says so", lambda: "everybody needs a key here; " in (mesh.folder / "launcher.out").read_text())
    assert 1 == len(printed(mesh))
    assert "Paris" in answer(client(mesh, printed(mesh)[0]))


def keys(mesh: MeshUnderTest) -> list[dict[str, Any]]:
    return mesh.http.get(f"{mesh.url}/api/keys").json()["items"]


@pytest.mark.sabotage("deaf-to-key-ends")
def test_a_key_ends_by_revocation_or_by_its_time_and_what_runs_runs_on(locked_mesh: MeshUnderTest) -> None:
    mesh = locked_mesh
    short = made(mesh, "--expires", "3s")
    key = made(mesh, "--name", NAME)
    asked = client(mesh, key["secret"])
    assert "Paris" in answer(asked)
    with pytest.raises(openai.PermissionDeniedError):
        asked.get("../api/status", cast_to=object)
    # given an answer that runs
    simulated = {"source": {"kind": "simulated"}, "engine": "simulated", "engine_args": {"ms_per_token": 50}}
    assert 201 == mesh.deploy("slow", simulated).status_code
    until("it is ready", lambda: mesh.ready_replicas("slow"), 60)
    completions: Any = asked.chat.completions
    stream = completions.create(
        model="slow",
        messages=QUESTION,
        stream=True,
        max_tokens=60,
        stream_options={"include_usage": True},
    )
    first = next(iter(stream))
    assert "slow" == first.model
    # when the key is revoked by its name
    assert 0 == mesh.weft("keys", "revoke", NAME).returncode

    # then it begins nothing more
    def refused() -> bool:
        try:
            asked.models.list()
        except openai.AuthenticationError as error:
            return "revoked" in error.message
        return False

    until("the key is refused", refused)
    # and the answer that ran is whole
    usage = [chunk.usage for chunk in stream if chunk.usage]
    assert 60 == usage[-1].completion_tokens
    # and a key's time ends it as well
    brief = client(mesh, short["secret"])
    until("it has expired", lambda: short["expires_at"] < time.time())
    with pytest.raises(openai.AuthenticationError, match="expired"):
        answer(brief)
    states = {each["id"]: (each["state"], each["name"]) for each in keys(mesh)}
    assert ("revoked", NAME) == states[key["key"]]
    assert ("expired", None) == states[short["key"]]
    mesh.weft("remove", "slow")


@pytest.mark.sabotage("any-model")
def test_a_key_for_some_models_sees_and_uses_those_alone(locked_mesh: MeshUnderTest) -> None:
    mesh = locked_mesh
    mesh.deploy("other", {"source": {"kind": "simulated"}, "engine": "simulated"})
    until("it is ready", lambda: mesh.ready_replicas("other"), 60)
    asked = client(mesh, made(mesh, "--model", "tiny")["secret"])
    assert ["tiny"] == [model.id for model in asked.models.list()]
    assert "Paris" in answer(asked)
    with pytest.raises(openai.PermissionDeniedError) as refused:
        answer(asked, "other")
    assert "model_not_allowed" == refused.value.code
    with pytest.raises(openai.PermissionDeniedError):
        asked.embeddings.create(model="other", input="x")
    mesh.weft("remove", "other")


@pytest.mark.sabotage("mute-lock")
def test_the_page_asks_for_a_key_and_then_shows_the_mesh(locked_mesh: MeshUnderTest, browser: Browser) -> None:
    mesh = locked_mesh
    browser.look()
    browser.open(mesh.url)
    browser.shows("#lock", "asks for a key")
    assert "" == browser.text("#away")
    assert 0 == browser.count("#nodes > *")
    # when a key is not known, it says so
    browser.run("document.querySelector('#key').focus()")
    browser.type("weft-00000000-nobody\n")
    browser.shows("#lock-why", "not known here")
    # when one is good, the mesh is there, with its events, and answers
    secret = made(mesh, "--scope", "read", "--scope", "inference")["secret"]
    browser.run("document.querySelector('#key').focus()")
    browser.type(f"{secret}\n")
    browser.shows("#nodes", "worker-1")
    browser.shows("#events", "key created")
    assert "" == browser.text("#lock")
    browser.run("document.querySelector('#message').focus()")
    browser.type("What is the capital of France?\n")
    browser.shows(".them .text", "Paris")
    # and it stands in no address, and in nothing that outlives the tab
    assert secret not in browser.run("return location.href + JSON.stringify(localStorage) + document.cookie")
    browser.open("about:blank")
    browser.errors()  # the refusals, as they were meant


@pytest.mark.sabotage("telling-prefix")
def test_secrets_and_names_stay_where_they_belong(locked_mesh: MeshUnderTest) -> None:
    mesh = locked_mesh
    # given a key that was made, used, refused, and ended, under a name
    key = made(mesh, "--name", "Grace of Grants", "--scope", "admin")
    secret: str = key["secret"]
    with httpx.Client(base_url=mesh.url, headers={"authorization": f"Bearer {secret}"}, timeout=30) as grace:
        said = [grace.get(path).text for path in ("/api/status", "/api/keys", "/api/requests", "/openapi.json")]
        said += [grace.get("/api/events?limit=1000").text, grace.get("/metrics").text]
        assert 200 == grace.delete(f"/api/keys/{key['key']}").status_code
        said += [grace.get("/api/status").text]
    said.append(json.dumps(mesh.events()))
    # then nothing that was said, logged or stored holds a secret
    secrets = [secret, *printed(mesh)]
    assert [] == [each for each in secrets if any(each in text for text in said)]
    assert [] == found_in(mesh.state, secrets)
    # and the name is in the bucket for people, until it is erased, and nowhere else
    assert any("Grace of Grants" in text for text in said[:2])
    assert {"KV_people"} == {streams(path) for path in found_in(mesh.state, ["Grace of Grants"])}
    assert 0 == mesh.weft("keys", "forget", key["key"]).returncode
    assert [] == found_in(mesh.state, ["Grace of Grants"])
    # and the machine's own key lies in a file that only its user may read
    own = mesh.state / "admin-key"
    assert 0o600 == own.stat().st_mode & 0o777
    assert [own] == found_in(mesh.state, [own.read_text().strip()])


def found_in(folder: Path, texts: list[str]) -> list[Path]:
    """The files that hold one of some texts."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if any(text.encode() in path.read_bytes() for text in texts)]


def streams(path: Path) -> str:
    """The NATS stream that a file belongs to."""
    return path.parts[path.parts.index("streams") + 1] if "streams" in path.parts else str(path)


@pytest.mark.slow
@pytest.mark.sabotage("keys-need-the-log")
def test_keys_are_checked_while_the_log_and_the_tables_are_away(locked_mesh: MeshUnderTest) -> None:
    mesh = locked_mesh
    key = made(mesh)["secret"]
    parts = ("nats", "postgres")
    for part in parts:
        assert 0 == mesh.weft("hold", part).returncode
        mesh.kill(part)
    until("both are gone", lambda: all(mesh.part(part)["state"] != "ready" for part in parts))
    try:
        time.sleep(1)
        body = {"model": "tiny", "messages": QUESTION}

        def status(secret: str) -> int:
            headers = {"authorization": f"Bearer {secret}"}
            return httpx.post(f"{mesh.url}/v1/chat/completions", json=body, headers=headers, timeout=30).status_code

        assert (200, 401) == (status(key), status("none"))
        listed = mesh.http.get(f"{mesh.url}/api/keys")
        assert 200 == listed.status_code
        # and what can't be recorded is said to be so
        assert 503 == mesh.http.post(f"{mesh.url}/api/keys", json={}).status_code
    finally:
        for part in parts:
            mesh.weft("release", part)
    until("the log is back", lambda: mesh.http.post(f"{mesh.url}/api/keys", json={}).status_code == 201, 60)


@pytest.mark.sabotage("forgetful-key-maker")
def test_the_same_idempotency_key_makes_one_key_even_at_once(locked_mesh: MeshUnderTest) -> None:
    mesh = locked_mesh
    before = len(keys(mesh))
    answers: list[httpx.Response] = []

    def ask() -> None:
        headers = {"idempotency-key": "one", "authorization": mesh.http.headers["authorization"]}
        answers.append(httpx.post(f"{mesh.url}/api/keys", json={"name": "CI"}, headers=headers, timeout=30))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {201} == {each.status_code for each in answers}
    assert 1 == len({each.json()["key"] for each in answers})
    assert 1 == len([each for each in answers if each.json()["secret"]])
    assert before + 1 == len(keys(mesh))
    # and another body under it is refused
    other = mesh.http.post(
        f"{mesh.url}/api/keys", json={"name": "CI", "scopes": ["read"]}, headers={"idempotency-key": "one"}
    )
    assert (422, "key_reused") == (other.status_code, other.json()["code"])


@pytest.mark.slow
@pytest.mark.sabotage("open-house")
def test_where_others_can_come_everybody_needs_a_key_and_nothing_is_plain(tmp_path: Path) -> None:
    mesh = MeshUnderTest(tmp_path)
    try:
        # when a mesh starts anew on every address of this machine
        mesh.up("--listen", "0.0.0.0")
        until("a key is printed", lambda: printed(mesh))
        # then this machine needs a key as well, and the printed one is good
        with httpx.Client(base_url=mesh.url, verify=trusted(mesh), timeout=30) as stranger:
            assert (401, 401) == (stranger.get("/v1/models").status_code, stranger.get("/api/status").status_code)
        with openai.DefaultHttpxClient(verify=trusted(mesh)) as theirs:
            asked = openai.OpenAI(base_url=f"{mesh.url}/v1", api_key=printed(mesh)[0], http_client=theirs)
            assert "Paris" in answer(asked)
        # and commands here find their own key, and whom to trust
        assert 0 == mesh.weft("status").returncode
        assert "first" in mesh.weft("keys").stdout
    finally:
        mesh.close()


def trusted(mesh: MeshUnderTest) -> ssl.SSLContext:
    """Nobody but the mesh's own authority."""
    return ssl.create_default_context(cafile=str(mesh.state / "trust" / "authority.pem"))
