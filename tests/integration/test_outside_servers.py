"""NATS and Postgres of an operator's own: three NATS servers with TLS, of which the leader dies under load, and then
two at once; and a Postgres that is away for a while. What was acknowledged stays, and whoever asks a model notices
nothing."""

import json
import os
import signal
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_servers import nats_server, port, postgres_server, supervised
from weft_servers.supervised import SupervisedProcess
from weft_testing.story import MeshUnderTest, until

pytestmark = pytest.mark.slow
NODE = "worker-1"


@dataclass
class Outside:
    """An operator's servers, and a mesh that runs on them."""

    mesh: MeshUnderTest
    nats: dict[str, SupervisedProcess]
    monitors: dict[str, int]
    postgres_folder: Path
    postgres: postgres_server.PostgresServer

    def stop_started_again(self) -> None:
        """Those that stories have put in the place of the first ones. What has ended already stays so."""
        for each in (*self.nats.values(), self.postgres):
            each.stop()

    def log_stream(self) -> dict[str, Any]:
        """What its leader says of EVENTS: only that one knows of the copies. Empty while there is none."""
        for name, number in self.monitors.items():
            if self.nats[name].poll() is None:
                with urllib.request.urlopen(f"http://127.0.0.1:{number}/jsz?streams=1&config=1", timeout=5) as answer:
                    for account in json.load(answer).get("account_details", ()):  # none while it starts
                        for stream in account["stream_detail"]:
                            if stream["name"] == "EVENTS" and stream.get("cluster", {}).get("leader") == name:
                                return stream
        return {}

    def leader(self) -> str:
        return until("the log has a leader", lambda: self.log_stream().get("cluster", {}).get("leader"), 60)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    with ExitStack() as stack:
        # given three servers by the configuration that the mesh writes, and a Postgres
        names, free = ("n1", "n2", "n3"), iter(port.choose(10))
        places = {name: (next(free), next(free), next(free)) for name in names}
        postgres = postgres_server.start(folder / "postgres", tcp=True, tcp_port=next(free))
        stack.callback(postgres.stop)
        assert postgres.tcp_url is not None
        urls = ",".join(f"tls://127.0.0.1:{client}" for client, _, _ in places.values())
        mesh = MeshUnderTest(folder, WEFT_NATS_URL=urls, WEFT_POSTGRES_URL=postgres.tcp_url)
        words = [f"{name}=127.0.0.1:{':'.join(map(str, ports))}" for name, ports in places.items()]
        written = mesh.weft("nats-config", *words, "--out", str(folder / "nats"))
        assert 0 == written.returncode, written.stderr
        assert f"WEFT_NATS_URL={urls} weft up" in written.stdout
        servers = {name: started(folder / "nats" / name) for name in names}
        for each in servers.values():
            stack.callback(each.stop)
        made = Outside(mesh, servers, {n: places[n][2] for n in names}, folder / "postgres", postgres)
        stack.callback(made.stop_started_again)
        stack.callback(mesh.close)
        # when a mesh is started on them
        mesh.up()
        mesh.http.close()
        mesh.http = httpx.Client(
            verify=ssl.create_default_context(cafile=mesh.state / "trust" / "authority.pem"), timeout=90
        )
        yield made


def started(folder: Path) -> SupervisedProcess:
    """A server as its operator starts it: in its folder."""
    command = ["sh", "-c", f"cd '{folder}' && exec '{nats_server.find_binary()}' -c nats.conf"]
    return supervised.launch(command, log=folder / "console.log")


@dataclass
class Done:
    """What became of requests and of changes."""

    answers: int = 0
    failures: list[str] = field(default_factory=list[str])
    acknowledged: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])


@pytest.mark.sabotage("outside-alone")
def test_a_leader_of_the_log_is_killed_under_load_and_nothing_acknowledged_is_lost(outside: Outside) -> None:
    mesh, done, stop = outside.mesh, Done(), threading.Event()
    # given a log in three copies, people who ask, and an admin who changes something all the time
    assert 3 == outside.log_stream()["config"]["num_replicas"]
    assert {"nats", "postgres"}.isdisjoint(part["name"] for part in mesh.run_file()["parts"])

    def ask() -> None:
        while not stop.wait(0.05):
            try:
                response = mesh.chat("What is the capital of Peru?")
                assert "Lima" in response.text, response.text
                done.answers += 1
            except (httpx.HTTPError, AssertionError) as error:
                done.failures.append(repr(error)[:300])

    def change() -> None:
        number = 0
        while not stop.wait(0.02):
            number += 1
            label = f"l{number}"
            try:
                said = mesh.http.patch(f"{mesh.url}/api/nodes/{NODE}/labels", json={label: "x"})
                (done.acknowledged if said.is_success else done.refused).append(label)
                mesh.http.delete(f"{mesh.url}/api/nodes/{NODE}/labels/{label}")
            except httpx.HTTPError as error:
                done.refused.append(f"{label}: {error!r}")

    threads = [threading.Thread(target=each) for each in (ask, ask, change)]
    for each in threads:
        each.start()
    try:
        until("changes are acknowledged", lambda: len(done.acknowledged) > 10, 60)
        # when the log's leader is killed
        leader = outside.leader()
        before = len(done.acknowledged), done.answers
        os.kill(outside.nats[leader].pid, signal.SIGKILL)
        # then changes go on, under another, and people are answered
        until("changes are acknowledged again", lambda: len(done.acknowledged) > before[0] + 10, 120)
        until("people are answered", lambda: done.answers > before[1] + 10, 60)
        assert leader != outside.leader()
    finally:
        stop.set()
        for each in threads:
            each.join(100)
    # and nobody was turned away meanwhile, and no acknowledged change is lost
    assert [] == done.failures
    log = json.dumps(mesh.events())
    assert [] == [label for label in done.acknowledged if f'"{label}"' not in log]
    # and with the server back all is as before
    outside.nats[leader].stop()
    outside.nats[leader] = started(mesh.folder / "nats" / leader)
    until("the log has its copies again", lambda: in_step(outside.log_stream()), 90)
    assert "Paris" in until("it answers", mesh.ask, 30)


@pytest.mark.sabotage("lost-with-two-servers")
def test_with_two_of_three_servers_away_models_answer_changes_wait_and_nothing_is_lost(outside: Outside) -> None:
    mesh = outside.mesh
    said = mesh.http.patch(f"{mesh.url}/api/nodes/{NODE}/labels", json={"before": "x"})
    assert said.is_success, said.text
    before = [each["event_id"] for each in mesh.events()]
    # when the log's leader is killed and another server with it, so that there is no majority
    gone = [outside.leader()]
    gone.append(next(name for name in outside.nats if name not in gone))
    for name in gone:
        os.kill(outside.nats[name].pid, signal.SIGKILL)
    # then a change is refused, and says why
    refusal = until("a change is refused", lambda: refused_change(mesh), 60)
    assert refusal.status_code in (503, 504), refusal.text
    assert refusal.json()["detail"]
    # and a model answers all the while, for longer than silent nodes would be replaced after
    ends = time.monotonic() + 12
    while time.monotonic() < ends:
        assert "Paris" in mesh.ask()
        time.sleep(0.2)
    # and with one of them back, so that there is a majority, changes are taken again, with nobody's help
    outside.nats[gone[0]].stop()
    outside.nats[gone[0]] = started(mesh.folder / "nats" / gone[0])
    until("a change is taken", lambda: changed(mesh), 120)
    # and what was acknowledged stays, in its order, and nobody was taken for lost
    after = until("the log is read", mesh.events, 60)
    assert before == [each["event_id"] for each in after[: len(before)]]
    assert list(range(1, len(after) + 1)) == [each["sequence"] for each in after]
    judged = ("offline", "brake_set", "stopped", "failed", "scaled")
    assert [] == [fact for each in after[len(before) :] for fact in each["facts"] if fact["type"] in judged]
    # and with all three the copies are whole
    outside.nats[gone[1]].stop()
    outside.nats[gone[1]] = started(mesh.folder / "nats" / gone[1])
    until("the log has its copies again", lambda: in_step(outside.log_stream()), 120)


def changed(mesh: MeshUnderTest) -> bool:
    return mesh.http.patch(f"{mesh.url}/api/nodes/{NODE}/labels", json={"again": "x"}).is_success


def refused_change(mesh: MeshUnderTest) -> httpx.Response | None:
    said = mesh.http.patch(f"{mesh.url}/api/nodes/{NODE}/labels", json={"meanwhile": "x"})
    return None if said.is_success else said


def in_step(stream: dict[str, Any]) -> bool:
    replicas = stream.get("cluster", {}).get("replicas", [])
    return len(replicas) == 2 and all(each["current"] and not each.get("offline") for each in replicas)


@pytest.mark.sabotage("dies-with-postgres")
def test_while_postgres_is_away_models_answer_and_are_placed_and_lists_say_so(outside: Outside) -> None:
    mesh = outside.mesh
    spec = {"source": {"kind": "builtin", "name": "tiny"}, "engine": "simulated"}
    lists = ("/api/nodes", "/api/models", "/api/replicas", "/api/requests")
    for path in lists:
        until(f"{path} answers", lambda path=path: mesh.http.get(f"{mesh.url}{path}").status_code == 200, 60)
    # when
    outside.postgres.stop()
    # then lists say 503, and why
    for path in lists:
        said = until(f"{path} says 503", lambda path=path: refused(mesh, path), 60)
        assert "database" in said.text or "tables" in said.text, said.text
    until("the tables are known to be away", lambda: mesh.status()["tables"]["state"] == "away", 60)
    # and a model answers, and a new one is placed and serves
    assert "Paris" in mesh.ask()
    mesh.deploy("meanwhile", {**spec, "source": {"kind": "simulated"}}).raise_for_status()
    until("the new model is ready", lambda: mesh.ready_replicas("meanwhile"), 60)
    assert 200 == mesh.chat("Hello?", "meanwhile", max_tokens=4).status_code
    # and when it is back, lists know what was meanwhile
    outside.postgres = postgres_server.start(outside.postgres_folder, tcp=True, tcp_port=outside.postgres.conf.port)
    until("the models are listed", lambda: "meanwhile" in mesh.http.get(f"{mesh.url}/api/models").text, 90)
    assert 200 == mesh.http.get(f"{mesh.url}/api/nodes").status_code


def refused(mesh: MeshUnderTest, path: str) -> httpx.Response | None:
    said = mesh.http.get(f"{mesh.url}{path}")
    return said if said.status_code == 503 else None
