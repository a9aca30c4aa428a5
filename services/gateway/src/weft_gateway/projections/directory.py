"""The directory: which models there are and where their ready replicas answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.ids import ModelId, NodeId
from weft_fleet import AliasView, Fleet, ModelView, ReplicaView

from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.model_state import ModelStanding, standing
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint import Endpoint, ready_endpoints
from weft_gateway.domain.unavailability import Unavailability, why_unavailable
from weft_gateway.projections.signal import Signal

_OF_NODES = ("node", "machine", "run", "inspection")
"""Kinds whose key begins with a node's id."""


@dataclass(eq=False)
class Directory:
    """The fleet, and per model what may be routed to. Answers from memory."""

    fleet: Fleet = field(default_factory=Fleet)
    changed: Signal = field(default_factory=Signal, compare=False)
    version: int = field(default=0, compare=False)
    """Counts the folded batches: what was read under another one may be stale."""
    created: dict[ModelId, float] = field(default_factory=dict[ModelId, float])
    """When a model's first revision was accepted, in seconds since the epoch."""
    event_id: str = ""
    """Of the last folded commit; its sequence is the fleet's position."""
    _endpoints: dict[ModelId, tuple[Endpoint, ...]] = field(
        default_factory=dict[ModelId, tuple[Endpoint, ...]], compare=False
    )

    def fold(self, commits: Sequence[Recorded]) -> None:
        """Fold a batch and wake the tasks that wait for a change."""
        for commit in commits:
            self.fleet.apply(commit)
            if commit.aggregate.kind == "model":
                self.created.setdefault(ModelId(commit.aggregate.key), commit.at)
            self.event_id = commit.event_id
        self.invalidate()

    def invalidate(self) -> None:
        """What was read before may be stale: forget it and wake the tasks that wait for a change."""
        self._endpoints.clear()
        self.version += 1
        self.changed.fire()

    def model(self, name: str) -> ModelView | None:
        """The model of a name; None for a deleted one."""
        return self.fleet.model_named(name)

    def model_for(self, name: str, caller: Caller = NOBODY) -> ModelView:
        """The model that a caller names. Raises Refused: 403, or 404, which lists what it may use."""
        caller.check_model(name)
        model = self.model(name)
        if model is None:
            raise self._unknown(name, caller)
        return model

    def model_or_alias_for(self, name: str, caller: Caller = NOBODY) -> ModelView | AliasView:
        """What a caller names, and may use by that name: who may use an alias may use what it stands for. Raises as
        `model_for` does."""
        caller.check_model(name)
        found = self.model(name) or self.fleet.aliases.get(name)
        if found is None:
            raise self._unknown(name, caller)
        return found

    def served(self, caller: Caller = NOBODY) -> list[ModelView]:
        """All models that are not deleted and that the caller may use, by name."""
        only = caller.models
        served = (m for m in self.fleet.models.values() if not m.deleted and (only is None or m.name in only))
        return sorted(served, key=lambda m: m.name)

    def stands_for(self, alias: str, name: str) -> bool:
        """Whether an alias stands for the model of a name."""
        view, model = self.fleet.aliases.get(alias), self.model(name)
        return view is not None and model is not None and any(target.model == model.id for target in view.targets)

    def aliases(self, caller: Caller = NOBODY) -> list[AliasView]:
        """All aliases that the caller may use, by name."""
        only = caller.models
        allowed = (view for view in self.fleet.aliases.values() if only is None or view.name in only)
        return sorted(allowed, key=lambda view: view.name)

    def endpoints(self, model: ModelId) -> tuple[Endpoint, ...]:
        """Where a model's ready replicas answer."""
        found = self._endpoints.get(model)
        if found is None:
            found = self._endpoints[model] = tuple(ready_endpoints(self.fleet, model))
        return found

    def is_current(self, endpoint: Endpoint) -> bool:
        """Whether the log still says that this very run is ready."""
        return any(t.event_id == endpoint.event_id for t in self.endpoints(endpoint.model))

    def is_removed(self, id: NodeId) -> bool:
        """Whether a node is out of the mesh."""
        node = self.fleet.nodes.get(id)
        return node is None or node.removed

    def replicas(self, model: ModelView) -> list[ReplicaView]:
        """A model's replicas that are wanted or still hold something."""
        return [r for id in model.replicas if (r := self.fleet.replicas.get(id)) is not None]

    def name_of_node(self, commit: Recorded) -> dict[str, str]:
        """The name of the node that a commit is about, by its id; empty where it is about none that is known."""
        id = NodeId(commit.aggregate.key.partition(".")[0])
        node = self.fleet.nodes.get(id) if commit.aggregate.kind in _OF_NODES else None
        return {id: node.name} if node is not None else {}

    def _unknown(self, name: str, caller: Caller) -> Refused:
        there = sorted(each.name for each in (*self.served(caller), *self.aliases(caller)))
        what = f"Model {name[:128]!r} does not exist; there is: {', '.join(there[:20]) or 'none'}."
        return Refused(404, what, param="model", code="model_not_found")

    def stands(self, id: ModelId) -> tuple[ModelView, ModelStanding] | None:
        """A model and how it stands; None for one that the log doesn't have."""
        model = self.fleet.models.get(id)
        return None if model is None else (model, standing(model, self.replicas(model)))

    def why_unavailable(self, model: ModelView) -> Unavailability:
        """Why the model is not served while none of its replicas is ready, and whether waiting helps."""
        return why_unavailable(model, self.replicas(model), self.fleet.nodes.values(), self.fleet.rooms)
