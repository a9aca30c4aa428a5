"""A clock jumps by an hour, forwards and then backwards, under all services and under a worker, while they run."""

import json
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from weft_testing.founded_mesh import FoundedMesh
from weft_testing.front_doors import FrontDoors
from weft_testing.story import until

from .jumping_clock import JumpingClock

pytestmark = pytest.mark.slow
HOUR = 3600
PER_SECOND = 4
SPEC: dict[str, Any] = {
    "source": {"kind": "simulated"},
    "engine": "simulated",
    "concurrency": 64,
    "engine_args": {"ms_per_token": 20},
}
ASKED = {"model": "busy", "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 40}
JUDGED = ("unhealthy", "offline", "brake_set", "stopped", "failed", "degraded", "expired", "unservable")


class Jumpy(FoundedMesh):
    """A mesh whose services share a clock, and one of whose two workers has another."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, gateways=1, settings={"WEFT_START_GRACE": "1"})
        self.services = JumpingClock(folder / "services-clock")
        self.worker = JumpingClock(folder / "worker-clock")

    def start(self, part: str, tree: Path | None = None, **settings: str) -> None:
        clock = {"worker-1": None, "worker-2": self.worker.folder}.get(part, self.services.folder)
        super().start(part, tree or clock, **settings)


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Jumpy]:
    with Jumpy(tmp_path) as mesh:
        assert isinstance(mesh, Jumpy)
        yield mesh


@pytest.mark.sabotage("stalled-by-the-calendar")
def test_an_hour_forwards_and_an_hour_back_cost_no_request_no_node_and_no_run(mesh: Jumpy) -> None:
    mesh.deploy("busy", SPEC | {"min_replicas": 2, "max_replicas": 2, "strategy": "spread"}).raise_for_status()
    until("both replicas serve", lambda: 2 == len(mesh.ready_replicas("busy")), 60)
    running = {each["id"]: each["incarnation"] for each in mesh.ready_replicas("busy")}
    trust = ssl.create_default_context(cafile=mesh.authority)
    with FrontDoors([mesh.url()], ASKED, per_second=PER_SECOND, trust=trust, key=mesh.admin_key) as load:
        load.goes_on(PER_SECOND)
        # when the services' clock jumps, an hour forwards, and then two back
        for hours in (1, -1):
            mesh.services.jump(hours * HOUR)
            until("the services see it", lambda hours=hours: 1 > abs(off(mesh) - hours))
            it_works(mesh, load, f"services-{hours % 3}", {})
        mesh.services.jump(0)
        # and when a worker's does
        for hours in (1, -1):
            mesh.worker.jump(hours * HOUR)
            it_works(mesh, load, f"worker-{hours % 3}", {"node.name": "worker-2"})
            assert 1 > abs(off_by_its_log(mesh, "worker-2") - hours)
        mesh.worker.jump(0)
        it_works(mesh, load, "after", {})
    # then all requests were answered, and nothing was taken for lost or begun anew
    assert Counter() == load.troubles
    events = mesh.events()
    assert list(range(1, len(events) + 1)) == [each["sequence"] for each in events]
    assert [] == [fact for each in events for fact in each["facts"] if fact["type"] in JUDGED]
    assert running == {each["id"]: each["incarnation"] for each in mesh.ready_replicas("busy")}


def off(mesh: Jumpy) -> float:
    """How many hours the gateway's clock is off the log's, by what it says of itself."""
    said = mesh.http.get(f"{mesh.url()}/api/status").headers["date"]
    log = max(each["at"] for each in mesh.events())
    return (parsedate_to_datetime(said).timestamp() - log) / HOUR


def off_by_its_log(mesh: Jumpy, part: str) -> float:
    """How many hours a part's clock is off this one's, by the last line of its log."""
    said = json.loads(mesh.log(part).read_text().splitlines()[-1])["timestamp"]
    return (datetime.fromisoformat(said).timestamp() - time.time()) / HOUR


def it_works(mesh: Jumpy, load: FrontDoors, name: str, selector: dict[str, str]) -> None:
    """Requests go on for longer than a silence of nodes may last, a change is made, a model is placed and serves."""
    load.goes_on(2 * PER_SECOND)
    said = mesh.http.patch(f"{mesh.url()}/api/nodes/worker-1/labels", json={name: "x"})
    assert said.is_success, said.text
    mesh.deploy(name, SPEC | {"selector": selector}).raise_for_status()
    until(f"{name} serves", lambda: mesh.ready_replicas(name), 60)
    assert mesh.ask("Hello?", name, max_tokens=4)
    key = json.loads(mesh.weft("keys", "create", "--name", name, "--expires", "30m", "--json").stdout)["secret"]
    headers = {"Authorization": f"Bearer {key}"}
    assert 200 == mesh.http.get(f"{mesh.url()}/v1/models", headers=headers).status_code
    load.goes_on(6 * PER_SECOND)
