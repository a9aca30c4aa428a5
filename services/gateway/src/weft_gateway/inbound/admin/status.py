"""`GET /api/status`: the whole mesh in one look, from memory."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from weft_eventlog import Projection
from weft_runtime.health import Health

from weft_gateway.domain.mesh_health import problems_of
from weft_gateway.domain.model_state import standing
from weft_gateway.domain.shapes import model_shape, node_shape, replica_shape
from weft_gateway.inbound.inference.desk import Desk
from weft_gateway.projections.directory import Directory


class Status:
    """Answers whether or not NATS and Postgres are there."""

    def __init__(
        self,
        instance: str,
        directory: Directory,
        projection: Projection,
        desk: Desk,
        health: Health,
        connected: Callable[[], bool],
        tables: Callable[[], dict[str, Any]],
    ) -> None:
        self._instance = instance
        self._directory = directory
        self._projection = projection
        self._desk = desk
        self._health = health
        self._connected = connected
        self._tables = tables
        self.router = APIRouter(tags=["status"])
        self.router.add_api_route("/api/status", self.get, methods=["GET"])

    async def get(self) -> dict[str, Any]:
        """Nodes, models, replicas, the log, the brake, and what is wrong."""
        fleet = self._directory.fleet
        models = {model.id: standing(model, self._directory.replicas(model)) for model in self._directory.served()}
        problems = [*self._health.problems.values(), *problems_of(fleet, models)]
        if not self._connected():
            problems.insert(0, "the event log is away: what runs is served, nothing can change")
        shunned = self._desk.sessions.states()
        return {
            "gateway": {"instance": self._instance, "ready": self._health.ready},
            "mesh": {
                "health": "degraded" if problems else "ok",
                "problems": problems,
                "brake": fleet.brake.model_dump(mode="json", exclude={"type", "v"}) if fleet.brake else None,
            },
            "log": {
                "position": self._projection.position,
                "caught_up": self._projection.caught_up.is_set(),
                "connected": self._connected(),
                "halted": self._projection.halted,
            },
            "tables": self._tables(),
            "nodes": [node_shape(node) for node in fleet.nodes.values() if not node.removed],
            "models": [
                model_shape(fleet.models[id], stands, self._directory.created.get(id, 0.0))
                for id, stands in models.items()
            ],
            "replicas": [
                replica_shape(replica, _name(self._directory, replica.model), fleet.nodes)
                | {"shunned": shunned.get(replica.id)}
                for replica in fleet.replicas.values()
                if replica.state != "stopped" or replica.wanted
            ],
            "requests": {
                "running": len(self._desk.running),
                "waiting": self._desk.queue.total + self._desk.loading.total,
            },
        }


def _name(directory: Directory, model: Any) -> str:
    view = directory.fleet.models.get(model)
    return view.name if view is not None else ""
