"""Story: what happens in a mesh reaches a webhook and a collector of logs, whoever of them was away meanwhile."""

import base64
import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from weft_testing.collector import Collector
from weft_testing.hook_server import HookServer, Post
from weft_testing.story import MeshUnderTest, until

KEY = bytes(range(32))
STARTS_S = 90.0
"""An observer's start is mostly Python's imports."""
Place = tuple[int, int]
"""A fact's: its commit's sequence, and which of that one's facts it is."""


@pytest.mark.slow
@pytest.mark.sabotage("acknowledged-unhandled")
def test_a_failed_run_reaches_the_webhook_and_no_fact_is_lost_when_the_relay_or_the_receiver_goes_away(
    tmp_path: Path,
) -> None:
    mesh = MeshUnderTest(tmp_path)
    mesh.up("--no-model")
    try:
        with HookServer() as hook, Collector() as collector:
            relay = observer(
                mesh, "hook", "webhook", WEFT_WEBHOOK_URL=hook.url, WEFT_WEBHOOK_SECRET_FILE=secret(tmp_path)
            )
            logs = observer(mesh, "logs", "otlp", WEFT_OTLP_ENDPOINT=collector.url)
            # given a receiver that is away, and so facts that are at hand when the relay is killed
            hook.answer = lambda body: 503
            with running(relay) as first, running(logs):
                until("it tries in vain", lambda: hook.posts, STARTS_S)
                first.kill()
                first.wait(10)
                # when a run fails, and both are back
                a_run_fails(mesh)
                hook.answer = lambda body: 204
                with running(relay) as second:
                    failed = until("the run's end arrives", lambda: delivered(hook, "run.failed"), STARTS_S)
                    last = mesh.events()[-1]["sequence"]
                    until("all arrives", lambda: places(hook)[-1][0] >= last)
                    until("all is exported", lambda: {s for s, _ in recorded(collector)} >= {last}, STARTS_S)
                    # then it is signed, every fact came, in the log's order, and what was tried in vain came first
                    is_told_as_it_was(mesh, failed)
                    whole = [place for place in facts(mesh) if place[0] <= last]
                    assert whole == [place for place in places(hook) if place[0] <= last]
                    assert whole == [place for place in recorded(collector) if place[0] <= last]
                    is_logged_as_it_was(collector)
                    second.send_signal(signal.SIGTERM)
                    assert 0 == second.wait(30)
    finally:
        mesh.close()


def a_run_fails(mesh: MeshUnderTest) -> None:
    for_good = ("--engine-arg", "fail_load=it can't frobnicate", "--engine-arg", "fail_load_permanent=true")
    deployed = mesh.weft("deploy", "simulated", "--name", "odd", *for_good)
    assert (1, True) == (deployed.returncode, "frobnicate" in deployed.stderr)


def is_told_as_it_was(mesh: MeshUnderTest, post: Post) -> None:
    id, at = post.headers["webhook-id"], post.headers["webhook-timestamp"]
    wanted = base64.b64encode(hmac.digest(KEY, f"{id}.{at}.".encode() + post.body, hashlib.sha256)).decode()
    assert f"v1,{wanted}" == post.headers["webhook-signature"]
    data = json.loads(post.body)["data"]
    [event] = [each for each in mesh.events() if each["sequence"] == data["sequence"]]
    assert (event["kind"], event["key"], event["actor"]) == (data["kind"], data["key"], data["actor"])
    assert "frobnicate" in data["fact"]["reason"]


def is_logged_as_it_was(collector: Collector) -> None:
    [failed] = [each for each in collector.records if each.event == "weft.run.failed"]
    assert ("weft-observer", "ERROR") == (failed.service, failed.severity)
    assert "frobnicate" in failed.body["reason"]
    assert failed.attributes["weft.subject"].endswith(".failed")


def facts(mesh: MeshUnderTest) -> list[Place]:
    """All of the log, as the gateway shows it."""
    return [(event["sequence"], index) for event in mesh.events() for index in range(len(event["facts"]))]


def places(hook: HookServer) -> list[Place]:
    """What was delivered, each once, by its first time."""
    said = [json.loads(post.body)["data"] for post in hook.posts if post.status == 204]
    return [*dict.fromkeys((data["sequence"], data["index"]) for data in said)] or [(0, 0)]


def recorded(collector: Collector) -> list[Place]:
    """What was exported, each once, by its first time."""
    return [*dict.fromkeys((r.attributes["weft.sequence"], r.attributes["weft.index"]) for r in collector.records)]


def delivered(hook: HookServer, name: str) -> Post | None:
    found = [post for post in hook.posts if post.status == 204 and json.loads(post.body)["type"] == name]
    return found[0] if found else None


def secret(folder: Path) -> str:
    file = folder / "hook.secret"
    file.write_text(f"whsec_{base64.b64encode(KEY).decode()}\n")
    return str(file)


Command = tuple[list[str], dict[str, str], Path]


def observer(mesh: MeshUnderTest, name: str, module: str, **settings: str) -> Command:
    """How one of the package's own observers is started, once it is added; it may read all that happened."""
    added = mesh.weft("observers", "add", name, "--from", "start", "--json")
    assert 0 == added.returncode, added.stderr
    made: dict[str, Any] = json.loads(added.stdout)
    environment = {"WEFT_NATS_URL": made["url"], "WEFT_NATS_CREDENTIALS": made["credential"], **settings}
    return [sys.executable, "-m", f"weft_observer.{module}"], environment, mesh.folder / f"{name}.out"


@contextmanager
def running(command: Command) -> Generator[subprocess.Popen[bytes]]:
    argv, environment, told = command
    with told.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=os.environ | environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
