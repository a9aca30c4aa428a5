"""A real systemd runs what `weft install --systemd` makes, as it stands and with all that it forbids: a mesh that
answers, a worker that joins it with a token that nobody sees, a log on three machines."""

import json
import re
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_servers import port
from weft_testing.booted import Booted
from weft_testing.story import until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
STATE = "/var/lib/weft"
START_S = 180.0


@dataclass
class Machine:
    """A booted machine with a mesh, which speaks TLS and wants keys, on loopback."""

    booted: Booted
    url: str

    def weft(self, *words: str, **settings: str) -> str:
        """A command for its mesh, as the user that it runs as."""
        user = ("setpriv", "--reuid=weft", "--regid=weft", "--init-groups")
        done = self.booted.run(
            *user, sys.executable, "-m", "weft_cli", *words, timeout=START_S, WEFT_STATE=STATE, **settings
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return done.stdout

    def asked(self, method: str, path: str, **body: object) -> Any:
        """What the gateway answers, as an admin's program asks it."""
        trusted = ssl.create_default_context(cadata=self.booted.read(f"{STATE}/trust/authority.pem"))
        key = self.booted.read(f"{STATE}/admin-key").strip()
        with httpx.Client(verify=trusted, headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
            return client.request(method, f"{self.url}{path}", json=body or None).raise_for_status().json()

    def ask(self) -> str:
        question = [{"role": "user", "content": "What is the capital of France?"}]
        return json.dumps(self.asked("POST", "/v1/chat/completions", model="tiny", messages=question))

    def node(self, name: str) -> str:
        """In which state a node is."""
        return next((each["state"] for each in self.asked("GET", "/api/status")["nodes"] if each["name"] == name), "")

    def active(self, unit: str) -> str:
        return self.booted.show(unit, "ActiveState")["ActiveState"]

    def journal(self) -> str:
        """What units have said."""
        return self.booted.read("/var/log/units")


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Booted(ROOT) as booted:
        number = port.choose()[0]
        booted.write("/etc/weft/weft.env", "WEFT_TLS=always\nWEFT_REQUIRE_KEYS=1\n")
        made = booted.weft("install", "--systemd", "--now", "--port", str(number), timeout=START_S)
        assert 0 == made.returncode, made.stdout + made.stderr + booted.read("/var/log/units")
        yield Machine(booted, f"https://127.0.0.1:{number}")


@pytest.mark.sabotage("keys-in-the-journal")
def test_a_mesh_is_started_once_it_serves_and_runs_as_a_user_who_may_write_its_state_alone(machine: Machine) -> None:
    booted = machine.booted
    # given a unit that systemd calls started
    assert "active" == machine.active("weft.service")
    # then it answers at once
    assert "Paris" in machine.ask()
    # and all of it is the user's, may gain no right, and can't write where it has nothing to do
    pid = booted.show("weft.service", "MainPID")["MainPID"]
    status = booted.read(f"/proc/{pid}/status")
    assert re.search(r"NoNewPrivs:\s1\n", status)
    assert re.search(r"Seccomp:\s2\n", status)
    assert re.search(r"CapBnd:\s0+\n", status)
    owners = booted.run("sh", "-c", "ps -eo user:20,args | grep weft_ | grep -v -e weft_cli -e grep").stdout
    assert owners
    assert {"weft"} == {line.split()[0] for line in owners.splitlines()}
    for folder, writable in (("/etc", False), ("/opt", False), (STATE, True)):
        tried = booted.run(
            "nsenter", "--target", pid, "--mount", "setpriv", "--reuid=weft", "--regid=weft", "--clear-groups",
            "sh", "-c", f"touch {folder}/tried && rm {folder}/tried",
        )  # fmt: skip
        assert writable == (tried.returncode == 0), tried.stderr
    # and its journal has no key and no token
    assert "weft keys create --scope admin" in machine.journal()
    for secret in ("admin-key", "join-token"):
        assert booted.read(f"{STATE}/{secret}").strip() not in machine.journal()
    assert "weft-" not in machine.journal().replace("weft-worker", "")


@pytest.mark.sabotage("file-of-root-alone")
def test_a_worker_joins_with_a_token_that_no_list_of_processes_shows_and_drains_when_it_is_stopped(
    machine: Machine,
) -> None:
    booted = machine.booted
    token = machine.asked("POST", "/api/tokens", name="rack", auto_approve=True)["secret"]
    # when a worker's unit is made and started
    words = ("worker", "--systemd", "--now", "--join", machine.url, "--name", "rack1-a")
    done = booted.weft("install", *words, timeout=START_S, WEFT_JOIN_TOKEN=token)
    assert 0 == done.returncode, done.stdout + done.stderr

    # then it is in the mesh, by its own key
    until("the worker is healthy", lambda: machine.node("rack1-a") == "healthy", 60)
    # and nothing that other people of the machine may see has the token
    seen = booted.run("sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n'").stdout
    assert "weft_worker_agent" in seen
    assert token not in seen + machine.journal() + booted.read("/etc/systemd/system/weft-worker.service")
    assert "600" == booted.run("stat", "-c", "%a", "/etc/weft/worker.toml").stdout.strip()
    # and when its supervisor is killed, systemd brings it back
    pid = booted.show("weft-worker.service", "MainPID")["MainPID"]
    folded = machine.journal().count("caught up")
    assert folded
    booted.run("kill", "-9", pid)
    until("it is started again", lambda: booted.show("weft-worker.service", "NRestarts")["NRestarts"] == "1", 30)
    until("it has read its part of the log again", lambda: machine.journal().count("caught up") > folded, 60)
    until("it is healthy", lambda: machine.node("rack1-a") == "healthy", 60)
    # and when it is stopped, it drains, and ends by itself
    stopped = booted.run("systemctl", "stop", "weft-worker.service", timeout=START_S)
    assert 0 == stopped.returncode, stopped.stderr
    assert "success" == booted.show("weft-worker.service", "Result")["Result"]
    until("it is drained", lambda: machine.node("rack1-a") == "drained", 30)
    # and is not tried again where that would be in vain
    booted.write("/etc/weft/worker.toml", 'jion = "https://10.0.0.1:8080"\n')
    booted.run("systemctl", "start", "weft-worker.service")
    until("it has failed", lambda: machine.active("weft-worker.service") == "failed", 30)
    assert "0" == booted.show("weft-worker.service", "NRestarts")["NRestarts"]
    assert "did you mean `join`?" in machine.journal()


@pytest.mark.sabotage("unit-stays-down")
def test_a_killed_launcher_is_started_again_on_the_same_state_and_stopping_leaves_nothing(machine: Machine) -> None:
    booted = machine.booted
    before = json.loads(machine.weft("events", "--json").splitlines()[0])
    pid = booted.show("weft.service", "MainPID")["MainPID"]
    booted.run("kill", "-9", pid)
    until(
        "it serves again",
        lambda: (
            booted.show("weft.service", "NRestarts")["NRestarts"] == "1" and machine.active("weft.service") == "active"
        ),
        START_S,
    )
    assert "Paris" in machine.ask()
    assert before == json.loads(machine.weft("events", "--json").splitlines()[0])
    # when it is uninstalled
    gone = booted.weft("uninstall", "--systemd", timeout=START_S)
    # then nothing runs, its unit is gone and its state is there
    assert 0 == gone.returncode, gone.stderr
    assert not booted.there("/etc/systemd/system/weft.service")
    assert "" == booted.run("sh", "-c", "pgrep -u weft -f 'weft_(embedded|gateway|registry)|postgres' || true").stdout
    assert booted.there(f"{STATE}/trust/authority.pem")
    assert f"left {STATE}" in gone.stdout


@pytest.mark.sabotage("unit-stays-down")
def test_a_log_on_three_machines_is_three_units_and_one_that_dies_comes_back(tmp_path: Path) -> None:
    with ExitStack() as stack:
        free = iter(port.choose(9))
        places = {name: (next(free), next(free), next(free)) for name in ("n1", "n2", "n3")}
        machines = {name: stack.enter_context(Booted(ROOT)) for name in places}
        # given a folder for each server, made on one of them
        words = [f"{name}=127.0.0.1:{':'.join(map(str, ports))}" for name, ports in places.items()]
        first = machines["n1"]
        made = first.weft("nats-config", *words, "--out", "/root/nats", "--state", "/root/mesh")
        assert 0 == made.returncode, made.stderr
        # when each is brought to its machine and installed there
        for name, each in machines.items():
            packed = first.run("tar", "-C", f"/root/nats/{name}", "-cf", "/var/tmp/folder.tar", ".")
            assert 0 == packed.returncode, packed.stderr
            each.copy(first, "/var/tmp/folder.tar", "/root/folder.tar")
            each.run("sh", "-c", f"mkdir -p /srv/{name} && tar -C /srv/{name} -xf /root/folder.tar")
            done = each.weft("install", "nats", "--systemd", "--folder", f"/srv/{name}", "--now")
            assert 0 == done.returncode, done.stdout + done.stderr

        def leader_sees(wanted: int) -> bool:
            """How many current replicas the leader of JetStream's own group has."""
            for name, each in machines.items():
                said = each.run("curl", "-s", "-m", "5", f"http://127.0.0.1:{places[name][2]}/jsz").stdout
                group = json.loads(said or "{}").get("meta_cluster", {})
                if group.get("leader") == name:
                    return wanted == sum(peer.get("current", False) for peer in group.get("replicas", []))
            return False

        # then they are one log
        until("three servers are one log", lambda: leader_sees(2), 60)
        assert {"weft"} == {
            each.run("stat", "-c", "%U", f"/srv/{name}/nats.conf").stdout.strip() for name, each in machines.items()
        }
        # and a server that is killed comes back to it
        killed = machines["n2"]
        killed.run("kill", "-9", killed.show("weft-nats.service", "MainPID")["MainPID"])
        until("it is started again", lambda: killed.show("weft-nats.service", "NRestarts")["NRestarts"] == "1", 30)
        until("it has taken in what it missed", lambda: leader_sees(2), 60)
