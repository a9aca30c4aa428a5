"""`GET /api/load`: what the mesh has to do now, from memory, of each sort the busiest; and whom Prometheus may ask.

For `weft top`, which looks every other second: the answer has the same size however large the mesh is.
"""

import heapq
import time
from collections import Counter
from collections.abc import Callable
from typing import Annotated

import weft_api as api
from fastapi import APIRouter, Query
from weft_contracts.ids import NodeId
from weft_eventlog import Projection
from weft_fleet import NodeAssignments, NodeView, ReplicaView
from weft_runtime.health import Health

from weft_gateway.domain.shapes import brake_shape
from weft_gateway.inbound.admin.rendered import Rendered
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.inbound.inference.model_loads import NOTHING, ModelLoads
from weft_gateway.outbound.connection_pool import ConnectionPool
from weft_gateway.projections.directory import Directory

MOST = 100
PROBLEMS_SHOWN = 20
Most = Annotated[int, Query(ge=0, le=MOST, description="So many of each list at most")]


class Load:
    """Answers whether or not NATS and Postgres are there. Cost: `bench/metrics.py`."""

    def __init__(
        self,
        instance: str,
        directory: Directory,
        projection: Projection,
        loads: ModelLoads,
        pool: ConnectionPool,
        health: Health,
        connected: Callable[[], bool],
    ) -> None:
        self._instance = instance
        self._directory = directory
        self._rendered = Rendered(directory)
        self._projection = projection
        self._loads = loads
        self._pool = pool
        self._health = health
        self._connected = connected
        self._nodes: dict[NodeId, tuple[NodeView, NodeAssignments, api.NodeLoad]] = {}
        """What is shown of each node, for as long as the log says the same."""
        self.router = APIRouter(tags=["status"], responses=PROBLEMS)
        add = answering(self.router)
        add("/api/load", self.get, "GET")
        add("/api/metrics/workers", self.workers, "GET")

    async def get(self, most: Most = 20) -> Answer[api.MeshLoad]:
        """What the mesh has to do now: in all, and of models, nodes and replicas those that have most to do."""
        ejected = {replica: why for replica, why in self._pool.ejections().items() if why is not None}
        self._rendered.update(ejected)
        models = self._model_loads()
        nodes = self._node_loads()
        brake = self._directory.fleet.brake
        problems = [*self._health.problems.values(), *self._rendered.problems]
        if not self._connected():
            problems.insert(0, "the event log is away: what runs is served, nothing can change")
        return Answer(
            {
                "gateway": {"instance": self._instance, "ready": self._health.ready},
                "at_s": time.monotonic(),
                "position": self._projection.position,
                "connected": self._connected(),
                "brake": brake_shape(brake) if brake else None,
                "totals": self._totals(models, nodes),
                "models": heapq.nsmallest(most, models, key=_busiest_model),
                "nodes": heapq.nsmallest(most, nodes, key=_busiest_node),
                "replicas": self._replica_loads(most),
                "problems": problems[:PROBLEMS_SHOWN],
            }
        )

    async def workers(self) -> Answer[list[api.ScrapedWorker]]:
        """The workers that may be asked for `/metrics`, as Prometheus' `http_sd_configs` takes them."""
        nodes = self._directory.fleet.nodes.values()
        return Answer([_scraped(node) for node in nodes if node.approved and not node.removed])

    def _model_loads(self) -> list[api.ModelLoad]:
        loads = self._loads.now()
        found: list[api.ModelLoad] = []
        for view, stands in self._rendered.models:
            load = loads.get(view.name, NOTHING)
            found.append(
                {
                    "name": view.name,
                    "state": stands.state,
                    "ready": stands.ready,
                    "wanted": stands.wanted,
                    "running": load.running,
                    "waiting": load.busy + load.loading,
                    "tokens": load.tokens,
                }
            )
        return found

    def _node_loads(self) -> list[api.NodeLoad]:
        running = Counter[NodeId]()
        for state in self._pool.states():
            running[state.endpoint.node] += state.load
        known, self._nodes = self._nodes, {}
        found: list[api.NodeLoad] = []
        for view in self._rendered.nodes:
            held = self._directory.fleet.assigned(view.id)
            before = known.get(view.id)
            row = before[2] if before and before[0] is view and before[1] is held else _node_load(view, held)
            self._nodes[view.id] = view, held, row
            row["running"] = running[view.id]
            found.append(row)
        return found

    def _replica_loads(self, most: int) -> list[api.ReplicaLoad]:
        """Those that this gateway asks, the busiest first; then those that aren't ready."""
        states = heapq.nsmallest(most, self._pool.states(), key=lambda each: (-each.load, each.endpoint.replica))
        fleet = self._directory.fleet
        asked = {state.endpoint.replica: state for state in states}
        views = [view for id in asked if (view := fleet.replicas.get(id)) is not None]
        left = most - len(views)
        views += heapq.nsmallest(
            left, (view for view in self._rendered.unready if view.id not in asked), key=lambda view: view.id
        )
        return [self._replica_load(view) for view in views]

    def _replica_load(self, view: ReplicaView) -> api.ReplicaLoad:
        fleet, state = self._directory.fleet, self._pool.state(view.id)
        model, leader = fleet.models.get(view.model), view.leader
        node = fleet.nodes.get(leader.node) if leader is not None else None
        return {
            "id": view.id,
            "model": model.name if model is not None else "",
            "node": node.name if node is not None else None,
            "state": view.state,
            "own": state.in_flight if state is not None else None,
            "running": state.load if state is not None else None,
            "shunned": state.ejected if state is not None else None,
        }

    def _totals(self, models: list[api.ModelLoad], nodes: list[api.NodeLoad]) -> api.Totals:
        return {
            "nodes": Counter(each["state"] for each in nodes),
            "models": Counter(each["state"] for each in models),
            "replicas": self._rendered.replica_states,
            "running": sum(each["running"] for each in models),
            "waiting": sum(each["waiting"] for each in models),
            "tokens": sum(each["tokens"] for each in models),
            "memory": sum(each["memory"] for each in nodes),
            "claimed": sum(each["claimed"] for each in nodes),
        }


def _node_load(view: NodeView, held: NodeAssignments) -> api.NodeLoad:
    devices = view.hardware.devices if view.hardware is not None else ()
    return {
        "name": view.name,
        "state": view.state,
        "replicas": held.replicas,
        "running": 0,
        "devices": len(devices),
        "memory": sum(device.memory for device in devices),
        "claimed": sum(held.claims.values()),
        "pressure": sum(view.pressure.values()),
    }


def _busiest_model(each: api.ModelLoad) -> tuple[int, int, bool, str]:
    return -each["running"] - each["waiting"], -each["tokens"], each["ready"] >= each["wanted"], each["name"]


def _busiest_node(each: api.NodeLoad) -> tuple[int, bool, int, str]:
    return -each["running"], each["state"] == "healthy", -each["replicas"], each["name"]


def _scraped(node: NodeView) -> api.ScrapedWorker:
    host = f"[{node.addresses.host}]" if ":" in node.addresses.host else node.addresses.host
    return {
        "targets": [f"{host}:{node.addresses.http_port}"],
        "labels": {"node": node.id, "node_name": node.name},
    }
