"""Three NATS servers in real containers, as compose.nats-three.yaml has them: one of them may be away."""

import json
from typing import Any

import httpx
import pytest
from weft_contracts.topology import EVENTS
from weft_testing.containers.composed import Composed
from weft_testing.containers.podman import eventually

from .conftest import Built, project
from .faults import MONITOR

pytestmark = pytest.mark.slow

SERVERS = ("nats", "nats-1", "nats-2")
JSZ = f"http://127.0.0.1:{MONITOR}/jsz?accounts=true&streams=true&config=true"


def test_a_log_of_three_servers_takes_what_is_written_while_one_is_away(few: Built) -> None:
    with project(few, "three", ("nats-three",), (*SERVERS, "registry", "gateway")) as mesh:
        # given a log with a copy on each
        first = eventually("a key is made", lambda: made_key(mesh), 120)
        log = stream(mesh, "nats")
        assert (3, 2) == (log["config"]["num_replicas"], len(log["cluster"]["replicas"]))

        # when the one that leads it is stopped
        away = log["cluster"]["leader"]
        mesh.podman.run("stop", "--time", "60", mesh.container(away))

        # then what is written is taken by the others
        second = eventually("another key is made", lambda: made_key(mesh))
        (asked, *_) = (each for each in SERVERS if each != away)
        now = stream(mesh, asked)
        assert now["state"]["last_seq"] > log["state"]["last_seq"]
        assert now["cluster"]["leader"] != away

        # and once it is back, it has that too
        mesh.podman.run("start", mesh.container(away))
        eventually(f"{away} has caught up", lambda: last(mesh, away) >= now["state"]["last_seq"])
        with mesh.client() as client:
            assert {first, second} <= {each["id"] for each in client.get("/api/keys").json()["items"]}


def made_key(mesh: Composed) -> str | None:
    """The id of a new key, where what is written is taken."""
    try:
        with mesh.client() as client:
            said = client.post("/api/keys", json={"name": "app", "scopes": ["read"]})
    except httpx.TransportError:
        return None
    return said.json()["key"] if said.status_code == 201 else None


def stream(mesh: Composed, server: str) -> dict[str, Any]:
    """The log as this server has it. Raises AssertionError where it isn't there."""
    told = json.loads(mesh.podman.run("exec", mesh.container(server), "wget", "-q", "-O-", JSZ))
    accounts: list[dict[str, Any]] = told["account_details"]
    found = [each for account in accounts for each in account.get("stream_detail", []) if each["name"] == EVENTS.name]
    assert len(found) == 1, f"{server} has no {EVENTS.name}"
    return found[0]


def last(mesh: Composed, server: str) -> int:
    """The sequence up to which a server has the log; 0 while it isn't there."""
    try:
        return stream(mesh, server)["state"]["last_seq"]
    except AssertionError:
        return 0
