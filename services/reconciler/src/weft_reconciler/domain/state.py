"""All that this service remembers: the fleet, and what only its own rules ask for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.facts.mesh import BackendSet, BackendUpgraded, SecretSet
from weft_contracts.facts.model import Deleted, Retried, Scaled, Sized, SpecAccepted, Unloaded
from weft_contracts.facts.node import Assigned, Draining, Unassigned, WentOffline
from weft_contracts.facts.run import Failed
from weft_contracts.ids import ModelId, NodeId, ReplicaId, model_of
from weft_contracts.subjects import Aggregate
from weft_fleet import Fleet, is_elastic
from weft_requests import PendingRequests

from weft_reconciler.domain.failures import Failure, Failures
from weft_reconciler.domain.inspections import Inspections
from weft_reconciler.domain.offline_nodes import OfflineNodes
from weft_reconciler.domain.replacement_deadlines import DrainDeadlines, UnloadDeadlines
from weft_reconciler.domain.rollout_progress import RolloutProgress


@dataclass(slots=True)
class State:
    """Folded in place from every commit of the log, in order."""

    fleet: Fleet = field(default_factory=Fleet)
    requests: PendingRequests = field(default_factory=lambda: PendingRequests("reconciler"))
    inspections: Inspections = field(default_factory=Inspections)
    failures: Failures = field(default_factory=Failures)
    offline: OfflineNodes = field(default_factory=OfflineNodes)
    drain_deadlines: DrainDeadlines = field(default_factory=DrainDeadlines)
    unload_deadlines: UnloadDeadlines = field(default_factory=UnloadDeadlines)
    progress: RolloutProgress = field(default_factory=RolloutProgress)
    names: dict[Aggregate, int] = field(default_factory=dict[Aggregate, int])
    """Sequence of the last commit of each name."""
    served: set[ReplicaId] = field(default_factory=set[ReplicaId])
    """Wanted replicas that were ready at least once."""
    retried: dict[ModelId, int] = field(default_factory=dict[ModelId, int])
    """Sequence of each model's last `retried`."""

    dirty: dict[ModelId, None] = field(default_factory=dict[ModelId, None], compare=False)
    """Models to look at: something happened to them, or time may change the status of their replicas. A rule that finds
    nothing to change or to wait for takes one off the list."""
    spread: dict[ModelId, None] = field(default_factory=dict[ModelId, None], compare=False)
    """Models with a revision that is wanted on all nodes that match: every change of a node may concern them."""

    elastic: dict[ModelId, None] = field(default_factory=dict[ModelId, None], compare=False)
    """Models of which some revision leaves the number of replicas to what there is to do."""

    def fold(self, commits: Sequence[Recorded]) -> None:
        """Fold a batch."""
        for recorded in commits:
            self.apply(recorded)

    def on_restored(self) -> None:
        """The memory was filled from a snapshot: every model is looked at once."""
        self.dirty.update(dict.fromkeys(self.fleet.models))
        for id in self.fleet.models:
            self._note_spread(id)
            self._note_bounds(id)

    def apply(self, recorded: Recorded) -> None:
        """Fold one commit."""
        if recorded.aggregate.kind == "node":
            self._mark_dirty(recorded)
        self.fleet.apply(recorded)
        self._mark_spread(recorded)
        match recorded.aggregate.kind:
            case "request":
                self.requests.apply(recorded)
            case "inspection" | "machine":
                self.inspections.apply(recorded)
            case "node":
                self.inspections.apply(recorded)
                self._apply_node(NodeId(recorded.aggregate.key), recorded)
            case "run":
                self._apply_run(recorded)
            case "model":
                self._apply_model(ModelId(recorded.aggregate.key), recorded)
            case "name":
                self.names[recorded.aggregate] = recorded.sequence
            case "replica":
                self.dirty[model_of(ReplicaId(recorded.aggregate.key))] = None
            case "mesh":
                if any(isinstance(fact, BackendSet | BackendUpgraded) for fact in recorded.facts):
                    self.dirty.update(dict.fromkeys(self.fleet.models))
                if any(isinstance(fact, SecretSet) for fact in recorded.facts):
                    self.dirty.update({id: None for id, model in self.fleet.models.items() if model.given_up})
            case "token" | "artifact" | "key":
                pass

    def _note_bounds(self, id: ModelId) -> None:
        model = self.fleet.models[id]
        self.elastic.pop(id, None)
        if not model.deleted and any(is_elastic(spec) for _, spec in model.specs.values()):
            self.elastic[id] = None

    def _mark_dirty(self, recorded: Recorded) -> None:
        """What happens to a node happens to all that runs there. Before the fold: `removed` clears it."""
        if not all(isinstance(fact, Assigned | Unassigned) for fact in recorded.facts):
            for assignment in self.fleet.assigned(NodeId(recorded.aggregate.key)).assignments.values():
                self.dirty[assignment.model] = None

    def _mark_spread(self, recorded: Recorded) -> None:
        """What a node says or is told may let it match, or no more."""
        of_nodes = recorded.aggregate.kind in ("node", "machine", "mesh")
        if of_nodes and not all(isinstance(fact, Assigned | Unassigned) for fact in recorded.facts):
            self.dirty.update(self.spread)

    def _apply_node(self, node: NodeId, recorded: Recorded) -> None:
        for fact in recorded.facts:
            match fact:
                case WentOffline():
                    self.offline.note(node, fact, recorded.at, recorded.cause)
                case Draining():
                    self.drain_deadlines.note(node, fact, recorded.at, recorded.cause)
                case _:
                    pass

    def _apply_run(self, recorded: Recorded) -> None:
        """A run's commit counts where the fleet took it: under the node's present assignment."""
        node, _, id = recorded.aggregate.key.partition(".")
        self.dirty[model_of(ReplicaId(id))] = None
        replica = self.fleet.replicas.get(ReplicaId(id))
        run = replica.runs.get(NodeId(node)) if replica is not None else None
        if replica is None or run is None or run.sequence != recorded.sequence or not replica.wanted:
            return
        if replica.state == "ready":
            self.served.add(replica.id)
        model = self.fleet.models.get(replica.model)
        if model is None or replica.revision not in model.specs:
            return
        if model.replacing:
            self.progress.note(self.fleet, model, recorded.at)
        for fact in recorded.facts:
            if isinstance(fact, Failed):
                assignment = self.fleet.assignment(run.node, replica.id)
                recipe = assignment.recipe if assignment is not None else ""
                failure = Failure(recorded.at, fact.reason, fact.permanent, recorded.cause, recipe)
                self.failures.note(replica.model, replica.revision, run.node, failure)

    def _apply_model(self, id: ModelId, recorded: Recorded) -> None:
        self.dirty[id] = None
        for fact in recorded.facts:
            match fact:
                case SpecAccepted():
                    self._note_spread(id)
                    self.failures.begin_revision(self.fleet.models[id])
                    self.progress.begin(id, recorded.at)
                    self._note_bounds(id)
                case Retried():
                    self.failures.forget(id)
                    self.progress.begin(id, recorded.at)
                    self.retried[id] = recorded.sequence
                case Sized(was=0):
                    self.progress.woken(id, recorded.at)
                case Deleted():  # it retires all of them, without naming one
                    self.served = {replica for replica in self.served if model_of(replica) != id}
                    marked = self.unload_deadlines.by_replica
                    self.unload_deadlines.forget(tuple(replica for replica in marked if model_of(replica) == id))
                    self.spread.pop(id, None)
                    self.failures.forget(id)
                    self.failures.avoided.pop(id, None)
                    self.progress.forget(id)
                    self.retried.pop(id, None)
                    self.elastic.pop(id, None)
                case Scaled(retire=retire):
                    if (model := self.fleet.models.get(id)) is not None:
                        self.failures.note_scaled(model, fact)
                    self.served.difference_update(retire)
                    self.unload_deadlines.forget(retire)
                case Unloaded():
                    self.unload_deadlines.note(fact, recorded.at, recorded.cause)
                case _:
                    pass

    def _note_spread(self, id: ModelId) -> None:
        model = self.fleet.models[id]
        if not model.deleted and any(spec.spread_all for _, spec in model.specs.values()):
            self.spread[id] = None
