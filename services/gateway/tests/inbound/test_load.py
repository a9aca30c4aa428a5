"""`/api/load`: what the mesh has to do now, the busiest of each sort first; and whom Prometheus may ask."""

from types import SimpleNamespace
from typing import Any

import httpx
import weft_api
from fastapi import FastAPI
from weft_contracts.facts.mesh import BrakeSet
from weft_contracts.facts.node import Assigned, Removed
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.run import Loading, Ready
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec, Receipt
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.subjects import MESH, node, replica, run
from weft_gateway.domain.routing.endpoint import ready_endpoints
from weft_gateway.domain.routing.endpoint_state import EndpointState
from weft_gateway.inbound.admin.load import Load
from weft_gateway.inbound.inference.model_loads import ModelLoad
from weft_gateway.projections.directory import Directory
from weft_testing.fleet_log import FleetLog

SPEC = ModelSpec(source=SimulatedSource(), engine="simulated")
RECEIPT = Receipt(
    position=1, policy="p", policy_digest="p", seed=1, trigger="t", decided_at=1.0, refusals={}, candidates=()
)


class World:
    """A directory, and loads as a test says them."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.directory = Directory()
        self.log.listen(lambda commit: self.directory.fold([commit]))
        self.loads: dict[str, ModelLoad] = {}
        self.states: list[EndpointState] = []
        self.health = SimpleNamespace(problems=dict[str, str](), ready=True)
        self.connected = True

    def ready(self, model: str, on: NodeId) -> ReplicaId:
        """A model with a replica that answers on a node."""
        of = self.log.model(model, SPEC, replicas=1)
        (id,) = self.log.fleet.models[of].replicas
        member = Member(node=on, rank=0, devices=(DeviceClaim(index=0, bytes=30),))
        self.log.add(replica(id), Placed(model=of, revision=1, epoch=1, members=(member,), receipt=RECEIPT))
        assigned = Assigned(
            replica=id, model=of, model_name=model, revision=1, digest="d", epoch=1, members=(member,), spec=SPEC
        )
        self.log.add(node(on), assigned)
        said = Incarnation("i-1")
        self.log.add(run(on, id), Loading(epoch=1, incarnation=said))
        self.log.add(run(on, id), Ready(epoch=1, incarnation=said, port=1, engine="simulated", engine_version="1"))
        (endpoint,) = ready_endpoints(self.log.fleet, of)
        self.states.append(EndpointState(endpoint))
        return id

    async def ask(self, path: str = "/api/load") -> Any:
        by_replica = {each.endpoint.replica: each for each in self.states}
        pool: Any = SimpleNamespace(
            states=lambda: self.states,
            state=by_replica.get,
            ejections=lambda: {id: each.ejected for id, each in by_replica.items()},
        )
        loads: Any = SimpleNamespace(now=lambda: self.loads)
        projection: Any = SimpleNamespace(position=42)
        health: Any = self.health
        app = FastAPI()
        app.include_router(Load("gw", self.directory, projection, loads, pool, health, lambda: self.connected).router)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
            answer = await client.get(path)
        assert 200 == answer.status_code, answer.text
        return answer.json()


async def test_the_busiest_come_first_and_totals_count_all() -> None:
    world = World()
    idle, busy = world.log.node("idle", 80), world.log.node("busy", 80)
    world.ready("quiet", idle)
    world.ready("asked", busy)
    world.states[1].in_flight = 4
    world.loads = {"asked": ModelLoad(4, 2, 1, 900), "quiet": ModelLoad(0, 0, 0, 100)}
    said: weft_api.MeshLoad = await world.ask()
    assert (["asked", "quiet"], ["busy", "idle"]) == (
        [each["name"] for each in said["models"]],
        [each["name"] for each in said["nodes"]],
    )
    assert {"running": 4, "waiting": 3, "tokens": 1000, "memory": 160, "claimed": 60}.items() <= said["totals"].items()
    assert ({"healthy": 2}, {"ready": 2}, {"ready": 2}) == tuple(
        said["totals"][each] for each in ("nodes", "models", "replicas")
    )
    assert (1, 4, 30, 80) == tuple(said["nodes"][0][each] for each in ("replicas", "running", "claimed", "memory"))
    assert (4, "busy") == (said["replicas"][0]["running"], said["replicas"][0]["node"])


async def test_of_each_list_as_many_come_as_were_asked_for() -> None:
    world = World()
    for number in range(5):
        world.ready(f"model-{number}", world.log.node(f"node-{number}", 80))
    said = await world.ask("/api/load?most=2")
    assert [2, 2, 2] == [len(said[each]) for each in ("models", "nodes", "replicas")]
    assert 5 == sum(said["totals"]["nodes"].values())


async def test_a_replica_that_is_not_ready_follows_those_that_are_asked_and_one_that_is_shunned_says_why() -> None:
    world = World()
    id = world.ready("asked", world.log.node("a", 80))
    world.states[0].ejected = "retiring"
    world.log.model("coming", SPEC, replicas=1)
    said = await world.ask()
    assert [("asked", "ready", "retiring", 0), ("coming", "added", None, None)] == [
        (each["model"], each["state"], each["shunned"], each["running"]) for each in said["replicas"]
    ]
    assert id == said["replicas"][0]["id"]


async def test_what_is_wrong_stands_first_and_is_bounded() -> None:
    world = World()
    world.log.add(MESH, BrakeSet(silent=5, healthy_before=6))
    world.health.problems = {str(number): f"problem {number}" for number in range(50)}
    world.connected = False
    said = await world.ask()
    assert (False, 5, 20) == (said["connected"], said["brake"]["silent"], len(said["problems"]))
    assert said["problems"][0].startswith("the event log is away")


async def test_what_is_shown_of_a_node_follows_what_the_log_says_of_it() -> None:
    world = World()
    on = world.log.node("a", 80)
    assert 0 == (await world.ask())["nodes"][0]["replicas"]
    world.ready("x", on)
    assert 1 == (await world.ask())["nodes"][0]["replicas"]
    world.log.add(node(on), Removed(why="x"))
    assert [] == (await world.ask())["nodes"]


async def test_prometheus_is_told_of_every_worker_that_is_in_the_mesh() -> None:
    world = World()
    one, _ = world.log.node("one", 80, host="10.0.0.7"), world.log.node("six", 80, host="fd00::7")
    gone = world.log.node("gone", 80)
    world.log.add(node(gone), Removed(why="x"))
    assert [
        {"targets": ["10.0.0.7:1"], "labels": {"node": one, "node_name": "one"}},
        {"targets": ["[fd00::7]:1"], "labels": {"node": "n-six", "node_name": "six"}},
    ] == await world.ask("/api/metrics/workers")
