"""What a node runs, model by model, and taking one off it: `/api/nodes/{id}/models` and `…/models/{model}/unload`."""

from fastapi import APIRouter, Request
from weft_api import ModelOnNode, ModelsOnNode, Replica, Unloaded
from weft_contracts.facts.request import UnloadRequested
from weft_contracts.ids import ModelId, NodeId

from weft_gateway.domain.shapes import replica_shape
from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.admin.bodies import DrainBody
from weft_gateway.inbound.admin.naming import named_node
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory


class NodeModels:
    """From memory; costs what runs on the node."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["nodes"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/nodes/{id}/models", self.list, "GET")
        add("/api/nodes/{id}/models/{ref:path}/unload", self.unload, "POST")

    async def list(self, id: str) -> Answer[ModelsOnNode]:
        """The models that have replicas on a node, by name, and these."""
        return Answer({"items": models_on(self._directory, named_node(self._directory, id).id)})

    async def unload(self, request: Request, id: str, ref: str, body: DrainBody | None = None) -> Answer[Unloaded]:
        """Take a model off a node. Where its minimum asks for it others serve first, elsewhere: for so long as the
        deadline says. 409 where no other node could run what must run."""
        node = named_node(self._directory, id)
        model = self._directory.fleet.models.get(ModelId(ref)) or self._directory.model_for(ref)
        deadline = (body or DrainBody()).deadline_s
        return done(await self._asking.ask(request, UnloadRequested(model=model.id, node=node.id, deadline_s=deadline)))


def models_on(directory: Directory, node: NodeId) -> list[ModelOnNode]:
    """Each model with a place on a node, and its replicas there."""
    fleet = directory.fleet
    by_model: dict[ModelId, list[Replica]] = {}
    for id, assignment in fleet.assigned(node).assignments.items():
        if assignment.holds and (replica := fleet.replicas.get(id)) is not None:
            name = fleet.models[assignment.model].name
            by_model.setdefault(assignment.model, []).append(replica_shape(replica, name, fleet.nodes))
    found: list[ModelOnNode] = [
        {"id": id, "name": fleet.models[id].name, "replicas": replicas} for id, replicas in by_model.items()
    ]
    return sorted(found, key=lambda model: model["name"])
