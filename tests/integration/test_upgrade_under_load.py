"""From one release to the next, back, and forth again until it is finished: service by service, under a constant stream
of requests, none of which fails. Then there is no way back, and who tries it is told so.

The next release is this tree with what a next one would bring (`weft_testing.next_release`).
"""

import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from weft_testing import next_release
from weft_testing.founded_mesh import ORDER, FoundedMesh
from weft_testing.front_doors import FrontDoors
from weft_testing.story import until

pytestmark = pytest.mark.slow
PER_SECOND = 3
SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 64,
    "engine_args": {"ms_per_token": 30},
}
TWO = {"min_replicas": 2, "max_replicas": 2, "strategy": "spread"}
ASKED = {
    "model": "busy",
    "messages": [{"role": "user", "content": "Tell me a story."}],
    "max_tokens": 30,
    "temperature": 1,
    "seed": 7,
    "ignore_eos": True,
}


class Admin:
    """Somebody who changes a label all the time. What was acknowledged has to be in the log, and stay there."""

    def __init__(self, mesh: FoundedMesh) -> None:
        self._mesh = mesh
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._change)
        self.acknowledged: list[str] = []
        self.refused: list[str] = []

    def __enter__(self) -> "Admin":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(100)
        assert not self._thread.is_alive()

    def _change(self) -> None:
        number = 0
        while not self._stop.wait(0.25):
            number += 1
            value = f"v{number}"
            for gateway in self._mesh.gateways:
                url = f"{self._mesh.url(gateway)}/api/nodes/worker-1/labels"
                try:
                    said = self._mesh.http.patch(url, json={"turn": value})
                except httpx.TransportError:
                    continue  # one that ends: the other one is asked
                if said.status_code == 503 and said.json().get("code") in ("starting", "stopping"):
                    continue
                (self.acknowledged if said.is_success else self.refused).append(value)
                if not said.is_success:
                    self.refused[-1] += f": {said.status_code} {said.text[:200]}"
                break


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[FoundedMesh]:
    # an agent's start takes as long as the machine is busy; how soon a silent one counts as gone is another story's
    with FoundedMesh(tmp_path, settings={"WEFT_START_GRACE": "1", "WEFT_OFFLINE_AFTER": "60"}) as mesh:
        yield mesh


@pytest.mark.sabotage("next-release-stops-the-old")
def test_a_mesh_goes_to_the_next_release_and_back_and_there_for_good_and_no_request_fails(mesh: FoundedMesh) -> None:
    later = next_release.make(mesh.folder / "later")
    mesh.deploy("busy", SPEC | TWO).raise_for_status()
    until("both replicas serve", lambda: 2 == len(mesh.ready_replicas("busy")), 60)
    mesh.found(later)  # so that services of the next release may say what is new to it
    trust = ssl.create_default_context(cafile=mesh.authority)
    doors = [mesh.url(gateway) for gateway in mesh.gateways]
    with (
        FrontDoors(doors, ASKED, per_second=PER_SECOND, trust=trust, key=mesh.admin_key) as load,
        Admin(mesh) as admin,
    ):
        load.goes_on(PER_SECOND)
        # when all are replaced in the order that is written down, and put back, and replaced again
        engines = mesh.hosts("worker-1")
        go(mesh, later, "forward")
        refused_until_finished(mesh)
        go(mesh, None, "back")
        go(mesh, later, "again")
        # and a worker of containers is drained and started anew, while the other's engines ran on
        mesh.replace("worker-2", later)
        until("both replicas serve", lambda: 2 == len(mesh.ready_replicas("busy")), 60)
        assert engines
        assert engines <= mesh.hosts("worker-1")
        load.goes_on(PER_SECOND)
        # then it can be finished, and what is new be said
        until("nobody is behind", lambda: not mesh.http.get(f"{mesh.url()}/api/upgrade").json()["behind"])
        assert "=" in mesh.weft("upgrade", "finish").stdout
        mesh.deploy("noted", SPEC | {"note": "what is new"}).raise_for_status()
        until("it serves", lambda: mesh.ready_replicas("noted"), 60)
        there_is_no_way_back(mesh)
        load.goes_on(PER_SECOND)
    # and all requests were answered, whole and the same, all the while
    assert Counter() == load.troubles
    assert [] == admin.refused
    nothing_is_lost_and_nothing_placed_twice(mesh, admin)


def go(mesh: FoundedMesh, tree: Path | None, name: str) -> None:
    """Replace every service and a worker's agent, and see that the mesh works as it did."""
    for service in ORDER if tree is not None else reversed(ORDER):
        if service == "worker":
            mesh.agent_anew("worker-1", tree)
        for part in mesh.parts:
            if part.startswith(service) and part not in mesh.workers:
                mesh.replace(part, tree)
    said = mesh.deploy(name, SPEC)
    assert said.is_success, said.text
    until(f"{name} serves", lambda: mesh.ready_replicas(name), 60)


def refused_until_finished(mesh: FoundedMesh) -> None:
    """Services are of the next release, and workers are not: what these can't read is written by nobody."""
    said = mesh.deploy("early", SPEC | {"note": "too early"})
    assert 409 == said.status_code, said.text
    assert "Notes wait until the whole mesh reads them" in said.text
    finish = mesh.weft("upgrade", "finish", check=False)
    assert 1 == finish.returncode
    assert "the worker of worker-2 is of an earlier version" in finish.stderr


def there_is_no_way_back(mesh: FoundedMesh) -> None:
    """Services of the release before are started in the places of two of the next one."""
    for part in ("scheduler", "gateway-2"):
        mesh.stop(part)
        mesh.start(part)
    for part in ("scheduler", "gateway-2"):
        until(f"{part} says why", lambda part=part: "there is no way back" in mesh.says(part, "/healthz")[1], 60)
        assert 503 == mesh.says(part, "/readyz")[0]
        mesh.stop(part)


def nothing_is_lost_and_nothing_placed_twice(mesh: FoundedMesh, admin: Admin) -> None:
    events = mesh.events()
    sequences = [each["sequence"] for each in events]
    assert list(range(1, len(events) + 1)) == sequences
    text = json.dumps(events)
    assert admin.acknowledged
    assert [] == [value for value in admin.acknowledged if f'"{value}"' not in text]
    facts = [(event, fact) for event in events for fact in event["facts"]]
    placed = Counter(event["key"] for event, fact in facts if fact["type"] == "placed")
    assert placed
    assert {1} == set(placed.values())
    assert [] == [fact for _, fact in facts if fact["type"] in ("failed", "offline", "brake_set", "unservable")]
