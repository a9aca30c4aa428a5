"""The fleet: every node, model, replica and claim, folded from the log commit by commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from weft_contracts.catalogue import CATALOGUE
from weft_contracts.commit import Cause, Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import MachineFact
from weft_contracts.facts.mesh import BrakeLifted, BrakeSet
from weft_contracts.facts.model import ModelFact, Scaled
from weft_contracts.facts.node import NodeFact
from weft_contracts.facts.replica import ReplicaFact
from weft_contracts.facts.run import RunFact
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import ModelId, NodeId, ReplicaId

from weft_placement.fleet.canonical import digest_of
from weft_placement.fleet.changed import changed
from weft_placement.fleet.held import Assignment, Held, after_run, assignment_of
from weft_placement.fleet.model_view import ModelView, evolve_model, number_of
from weft_placement.fleet.node_view import NodeView, evolve_machine, evolve_node
from weft_placement.fleet.replica_view import ReplicaView, evolve_replica
from weft_placement.fleet.run_view import evolve_run

CLOSED_KEPT = 4096
"""Replicas that are over stay to be looked at until so many later ones are over too."""
_NOTHING = Held()
_ORDINARY: frozenset[type[Fact]] = frozenset(entry.fact for entry in CATALOGUE)
"""Facts that were read: not unknown, unreadable or voiding."""


@dataclass(slots=True)
class Fleet:
    """Give it every commit of the log in order. A commit costs the same however large the fleet is."""

    position: int = 0
    """The last sequence that was folded."""
    nodes: dict[NodeId, NodeView] = field(default_factory=dict[NodeId, NodeView])
    models: dict[ModelId, ModelView] = field(default_factory=dict[ModelId, ModelView])
    replicas: dict[ReplicaId, ReplicaView] = field(default_factory=dict[ReplicaId, ReplicaView])
    brake: BrakeSet | None = None
    """Set while so many nodes are silent that nothing may be replaced or evicted."""
    waiting: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are wanted and have no place, oldest first."""
    leaving: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are not wanted and are still assigned somewhere."""
    closed: dict[ReplicaId, None] = field(default_factory=dict[ReplicaId, None])
    """Replicas that are over: not wanted, and no claim is left. Oldest first, at most CLOSED_KEPT."""
    touched: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    """When what a node can take last changed (log sequence); the latest comes last."""
    _held: dict[NodeId, Held] = field(default_factory=dict[NodeId, Held])
    _names: dict[str, ModelId] = field(default_factory=dict[str, ModelId])

    def apply(self, recorded: Recorded) -> None:
        """Fold one commit. Other kinds of aggregate, and facts that can't be read, are passed over."""
        self.position = recorded.sequence
        facts = recorded.facts
        if not _ORDINARY.issuperset(map(type, facts)):
            facts = tuple(fact for fact in facts if type(fact) in _ORDINARY)
        match recorded.aggregate.kind:
            case "node":
                self._apply_node(NodeId(recorded.aggregate.key), recorded, facts)
            case "machine":
                self._apply_machine(NodeId(recorded.aggregate.key), facts)
            case "run":
                node, _, replica = recorded.aggregate.key.partition(".")
                self._apply_run(NodeId(node), ReplicaId(replica), recorded, facts)
            case "model":
                self._apply_model(ModelId(recorded.aggregate.key), recorded, facts)
            case "replica":
                self._apply_replica(ReplicaId(recorded.aggregate.key), recorded, facts)
            case "mesh":
                self._apply_mesh(facts)
            case "token" | "request" | "inspection" | "artifact" | "name" | "key":
                pass

    def model_named(self, name: str) -> ModelView | None:
        """The model that bears this name now."""
        id = self._names.get(name)
        return self.models.get(id) if id is not None else None

    def held(self, node: NodeId) -> Held:
        """What replicas hold on a node; nothing where the node is unknown or removed."""
        return self._held.get(node, _NOTHING)

    def claims(self, node: NodeId) -> Mapping[int, int]:
        """Claimed bytes by device; a device without a claim is absent."""
        return self.held(node).claims

    def assignment(self, node: NodeId, replica: ReplicaId) -> Assignment | None:
        """The replica's present assignment on a node, also when it is retiring; None if it has none."""
        return self.held(node).assignments.get(replica)

    def assigned_sequence(self, node: NodeId, replica: ReplicaId) -> int | None:
        """The log sequence of the replica's present assignment on a node."""
        assignment = self.assignment(node, replica)
        return assignment.sequence if assignment is not None else None

    def replicas_on(self, node: NodeId) -> tuple[ReplicaId, ...]:
        """Replicas that hold a claim on a node, oldest assignment first."""
        return tuple(id for id, assignment in self.held(node).assignments.items() if assignment.holds)

    def spec_of(self, replica: ReplicaView) -> tuple[str, ModelSpec]:
        """The digest and spec of a replica's revision. Raises KeyError if the log lacks it."""
        return self.models[replica.model].specs[replica.revision]

    def digest(self) -> str:
        """64 hex digits: equal for fleets folded from the same log, in any process."""
        return digest_of(self)

    def _apply_node(self, id: NodeId, recorded: Recorded, facts: Sequence[Fact]) -> None:
        view = self.nodes.get(id)
        for fact in cast("Sequence[NodeFact]", facts):
            view = evolve_node(id, view, fact, recorded.at)
            if view is not None:
                self.nodes[id] = view
                self._follow_node(id, fact, recorded)
        if view is not None:
            self.nodes[id] = changed(view, sequence=recorded.sequence)
            self._touch(id)

    def _follow_node(self, id: NodeId, fact: NodeFact, recorded: Recorded) -> None:
        """What a node's fact means for its claims and its replicas."""
        match fact.type:
            case "assigned":
                replica = fact.replica
                if any(member.node == id for member in fact.members):
                    assignment = assignment_of(id, fact, recorded.sequence, recorded.cause)
                    self._held[id] = self.held(id).put(assignment)
                    self._drop_run(id, replica, fact.epoch)
                    self._settle(replica)
            case "unassigned":
                assignment = self.assignment(id, fact.replica)
                if assignment is not None:
                    self._held[id] = self.held(id).put(changed(assignment, retiring=True))
                    self._settle(fact.replica)
            case "removed":
                replicas = self._held.pop(id, _NOTHING).assignments
                self._mark_gone(id, replicas, gone=True)
            case "offline" | "healthy":
                self._mark_gone(id, self.held(id).assignments, gone=self.nodes[id].gone)
            case _:
                pass

    def _apply_machine(self, id: NodeId, facts: Sequence[Fact]) -> None:
        view = self.nodes.get(id)
        if view is None:
            return
        for fact in cast("Sequence[MachineFact]", facts):
            view = evolve_machine(view, fact)
        self.nodes[id] = view
        self._touch(id)

    def _apply_run(self, node: NodeId, id: ReplicaId, recorded: Recorded, facts: Sequence[Fact]) -> None:
        for fact in cast("Sequence[RunFact]", facts):
            assignment = self.assignment(node, id)
            if assignment is None or assignment.epoch != fact.epoch:
                continue
            after = after_run(assignment, fact)
            if after is not assignment:
                self._held[node] = self.held(node).put(after)
                self._touch(node)
            view = self.replicas.get(id)
            if view is not None:
                run = evolve_run(node, view.runs.get(node), fact, recorded)
                self.replicas[id] = changed(view, runs={**view.runs, node: run})
            if after is not assignment:
                self._settle(id)

    def _apply_model(self, id: ModelId, recorded: Recorded, facts: Sequence[Fact]) -> None:
        view = self.models.get(id)
        for fact in cast("Sequence[ModelFact]", facts):
            before = view
            view = evolve_model(id, view, fact, recorded.cause)
            if view is None:
                continue
            self.models[id] = view
            self._follow_name(before, view)
            match fact.type:
                case "scaled":
                    self._scale(view, fact, recorded)
                case "deleted":
                    for replica in tuple(view.replicas):
                        self._retire(replica, recorded.cause, "the model was deleted")
                case _:
                    pass
        if view is not None:
            self.models[id] = changed(view, sequence=recorded.sequence)

    def _follow_name(self, before: ModelView | None, after: ModelView) -> None:
        if before is not None and self._names.get(before.name) == after.id:
            del self._names[before.name]
        if not after.deleted:
            self._names[after.name] = after.id

    def _scale(self, model: ModelView, fact: Scaled, recorded: Recorded) -> None:
        digest = model.specs[fact.revision][0] if fact.revision in model.specs else ""
        for id in fact.add:
            self.replicas[id] = ReplicaView(
                id=id,
                model=model.id,
                revision=fact.revision,
                number=number_of(id),
                digest=digest,
                cause=recorded.cause,
                avoid=fact.avoid,
                added_at=recorded.at,
            )
            self._settle(id)
        for id in fact.retire:
            self._retire(id, recorded.cause, fact.why)

    def _retire(self, id: ReplicaId, cause: Cause, why: str) -> None:
        view = self.replicas.get(id)
        if view is not None and view.wanted:
            self.replicas[id] = changed(view, wanted=False, retire_cause=cause, retire_why=why)
            self._settle(id)

    def _apply_replica(self, id: ReplicaId, recorded: Recorded, facts: Sequence[Fact]) -> None:
        view = self.replicas.get(id)
        if view is None:
            return
        for fact in cast("Sequence[ReplicaFact]", facts):
            view = evolve_replica(view, fact)
        gone = frozenset(member.node for member in view.members if self._is_gone(member.node))
        self.replicas[id] = changed(view, sequence=recorded.sequence, gone=gone)
        self._settle(id)

    def _apply_mesh(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, BrakeSet):
                self.brake = fact
            elif isinstance(fact, BrakeLifted):
                self.brake = None

    def _is_gone(self, node: NodeId) -> bool:
        view = self.nodes.get(node)
        return view is None or view.gone

    def _mark_gone(self, node: NodeId, replicas: Mapping[ReplicaId, Assignment], *, gone: bool) -> None:
        for id in replicas:
            view = self.replicas.get(id)
            if view is not None:
                nodes = view.gone | {node} if gone else view.gone - {node}
                self.replicas[id] = changed(view, gone=nodes)
                self._settle(id)

    def _drop_run(self, node: NodeId, id: ReplicaId, epoch: int) -> None:
        """A run of an earlier epoch says nothing about this assignment."""
        view = self.replicas.get(id)
        if view is not None and node in view.runs and view.runs[node].epoch != epoch:
            self.replicas[id] = changed(view, runs={n: r for n, r in view.runs.items() if n != node})

    def _touch(self, node: NodeId) -> None:
        self.touched.pop(node, None)
        self.touched[node] = self.position

    def _settle(self, id: ReplicaId) -> None:
        """Put the replica in the lists where it now belongs."""
        view = self.replicas.get(id)
        if view is None:
            return
        held = assigned = False
        for member in view.members:
            part = self.assignment(member.node, id)
            if part is not None:
                held = held or part.holds
                assigned = assigned or not part.retiring
        if held != view.held:
            view = self.replicas[id] = changed(view, held=held)
        wanted = view.wanted and not view.evicted
        _list(self.waiting, id, wanted and view.placed is None)
        _list(self.leaving, id, not wanted and assigned)
        over = not wanted and not held
        model = self.models.get(view.model)
        if model is not None:
            _list(model.replicas, id, not over)
        _list(self.closed, id, over)
        if len(self.closed) > CLOSED_KEPT:
            self._forget(next(iter(self.closed)))

    def _forget(self, id: ReplicaId) -> None:
        del self.closed[id]
        for member in self.replicas.pop(id).members:
            if member.node in self._held:
                self._held[member.node] = self._held[member.node].without(id)


def _list(ids: dict[ReplicaId, None], id: ReplicaId, belongs: bool) -> None:
    if belongs:
        ids.setdefault(id)
    else:
        ids.pop(id, None)
