"""The drills of the page for operators, by the very commands that stand there: a copy while requests go on, a lost
database, a lost scheduler, a leaked key, a stolen machine; and then all is lost but the copy.
"""

import shutil
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_testing.founded_mesh import FoundedMesh
from weft_testing.front_doors import FrontDoors
from weft_testing.story import until

from .operating_page import drill, drills

pytestmark = pytest.mark.slow
SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 64,
    "selector": {"node.name": "worker-1"},
}
MOVED = {name: value for name, value in SPEC.items() if name != "selector"}
ASKED = {"model": "busy", "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 20}
COPY = "A copy of all that can't be made again"
LOST = "All of it is lost, but for the copy"
DATABASE = "The database of lists is lost"
SCHEDULER = "The scheduler is lost"
KEY = "A key has leaked"
STOLEN = "A machine is stolen"


def run(mesh: FoundedMesh, title: str) -> str:
    """Do what the page says; what the last command prints."""
    said = ""
    for program, *words in drill(title):
        if program == "weft":
            said = mesh.weft(*words).stdout
        else:
            said = subprocess.run([program, *words], cwd=mesh.folder, check=True, capture_output=True, text=True).stdout
    return said


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[FoundedMesh]:
    with FoundedMesh(tmp_path, gateways=1, settings={"WEFT_START_GRACE": "1"}) as mesh:
        yield mesh


@pytest.mark.sabotage("lists-of-another-time")
def test_what_the_page_for_operators_says_of_losses_is_so(mesh: FoundedMesh) -> None:
    assert {COPY, LOST, DATABASE, SCHEDULER, KEY, STOLEN} == drills()
    mesh.deploy("busy", SPEC).raise_for_status()
    until("it serves", lambda: mesh.ready_replicas("busy"), 60)
    app = key_named(mesh, "app")
    until("lists are there", lambda: listed(mesh), 60)
    (mesh.folder / "copy").mkdir()
    trust = ssl.create_default_context(cafile=mesh.authority)
    with FrontDoors([mesh.url()], ASKED, per_second=4, trust=trust, key=mesh.admin_key) as load:
        load.goes_on(4)
        a_copy_is_taken_while_the_log_stands_still(mesh, load)
        the_scheduler_is_lost(mesh, load)
        load.goes_on(4)
    assert Counter() == load.troubles
    the_database_is_lost(mesh)
    a_key_has_leaked(mesh, app)
    later = a_machine_is_stolen(mesh)
    until("lists have the later request", lambda: later in requests_listed(mesh), 60)
    all_is_lost_but_the_copy(mesh, app, later)


def a_copy_is_taken_while_the_log_stands_still(mesh: FoundedMesh, load: FrontDoors) -> None:
    mesh.nats["n1"].stop()
    load.goes_on(8)
    run(mesh, COPY)
    mesh.start_server("n1")
    until("changes are taken", lambda: mesh.deploy("after", MOVED).is_success, 60)
    until("it serves", lambda: mesh.ready_replicas("after"), 60)


def the_database_is_lost(mesh: FoundedMesh) -> None:
    assert mesh.postgres is not None
    mesh.postgres.stop()
    shutil.rmtree(mesh.folder / "postgres")
    mesh.start_postgres()
    mesh.replace("gateway-1")  # a new database has another password
    until("lists are folded again", lambda: listed(mesh), 60)
    assert "worker-1" in run(mesh, DATABASE)


def the_scheduler_is_lost(mesh: FoundedMesh, load: FrontDoors) -> None:
    mesh.kill("scheduler")
    mesh.deploy("waits", MOVED).raise_for_status()
    load.goes_on(4)
    assert [] == mesh.ready_replicas("waits")
    mesh.start("scheduler")
    until("it is placed", lambda: mesh.ready_replicas("waits"), 60)


def a_key_has_leaked(mesh: FoundedMesh, app: str) -> None:
    assert 200 == models_with(mesh, app)
    assert "app" in run(mesh, KEY)
    assert 401 == models_with(mesh, app)


def a_machine_is_stolen(mesh: FoundedMesh) -> str:
    """The request for a model that the copy doesn't have."""
    asked = mesh.deploy("moved", MOVED | {"min_replicas": 2, "max_replicas": 2, "strategy": "spread"})
    asked.raise_for_status()
    until("both replicas serve", lambda: 2 == len(mesh.ready_replicas("moved")), 60)
    run(mesh, STOLEN)
    until("its worker is told to end", lambda: mesh.ended("worker-2"), 60)
    assert {} == mesh.node("worker-2")
    until("no replica is there", lambda: {"worker-1"} == {each["node_name"] for each in mesh.ready_replicas("moved")})
    assert mesh.ask("Hello?", "moved", max_tokens=4)
    return str(asked.json()["request"])


def all_is_lost_but_the_copy(mesh: FoundedMesh, app: str, later: str) -> None:
    before = {each["id"]: each["name"] for each in mesh.status()["nodes"] if each["name"] == "worker-1"}
    for part in mesh.parts:
        if part not in mesh.workers:
            mesh.stop(part)
    mesh.stop_servers()
    for folder in ("keys", "nats", "state/registry", "state/gateway-1"):  # the lists' database is ahead of the copy
        shutil.rmtree(mesh.folder / folder)
    for program, *words in drill(LOST)[:2]:
        subprocess.run([program, *words], cwd=mesh.folder, check=True)
    mesh.start_servers()
    for part in mesh.parts:
        if part not in mesh.workers:
            mesh.start(part)
    for part in mesh.parts:
        if part != "worker-2":
            mesh.ready(part)
    for _, *words in drill(LOST)[2:]:
        assert mesh.weft(*words, check=False).returncode in (0, 4)
    # then it is the same node, with the same model, and lists have what the copy has
    assert before.items() <= {each["id"]: each["name"] for each in mesh.status()["nodes"]}.items()
    until("it serves", lambda: mesh.ready_replicas("busy"), 60)
    assert mesh.ask("Hello?", "busy", max_tokens=4)
    until("lists are the log's again", lambda: listed(mesh) and not listed(mesh, "moved"), 60)
    until("requests of another time are gone", lambda: later not in requests_listed(mesh), 60)
    # and what was said after the copy is to be said again
    assert 200 == models_with(mesh, app)
    run(mesh, KEY)
    assert 401 == models_with(mesh, app)


def listed(mesh: FoundedMesh, model: str = "busy") -> bool:
    said = mesh.http.get(f"{mesh.url()}/api/models")
    return said.is_success and f'"{model}"' in said.text


def requests_listed(mesh: FoundedMesh) -> set[str]:
    said = mesh.http.get(f"{mesh.url()}/api/requests", params={"limit": 1000})
    return {each["id"] for each in said.raise_for_status().json()["items"]}


def key_named(mesh: FoundedMesh, name: str) -> str:
    said = mesh.http.post(f"{mesh.url()}/api/keys", json={"name": name, "scopes": ["inference"]})
    said.raise_for_status()
    return str(said.json()["secret"])


def models_with(mesh: FoundedMesh, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(
        f"{mesh.url()}/v1/models", headers=headers, verify=ssl.create_default_context(cafile=mesh.authority)
    ).status_code
