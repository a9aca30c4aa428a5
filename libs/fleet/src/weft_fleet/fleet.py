"""The fleet's fold: what each commit of the log changes in its tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from weft_contracts.catalogue import CATALOGUE
from weft_contracts.commit import Cause, Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.inspection import InspectionFact
from weft_contracts.facts.machine import MachineFact
from weft_contracts.facts.model import ModelFact, Scaled
from weft_contracts.facts.node import NodeFact
from weft_contracts.facts.replica import Evicted, ReplicaFact
from weft_contracts.facts.run import RunFact
from weft_contracts.ids import InspectionId, ModelId, NodeId, ReplicaId

from weft_fleet.alias_view import evolve_aliases
from weft_fleet.assignments import Assignment, after_run, assignment_of
from weft_fleet.backend_upgrade import after_use_of
from weft_fleet.changed import changed
from weft_fleet.files_told import follow_told, told_by
from weft_fleet.mesh_facts import apply_mesh
from weft_fleet.model_view import (
    ModelView,
    after_readiness,
    after_ready_in,
    evolve_model,
    number_of,
)
from weft_fleet.node_machine import evolve_asked, evolve_machine
from weft_fleet.node_view import evolve_node
from weft_fleet.replica_view import ReplicaView, evolve_replica
from weft_fleet.room import make_room
from weft_fleet.run_view import evolve_run
from weft_fleet.tables import NO_ASSIGNMENTS, FleetTables

CLOSED_KEPT = 4096
"""Replicas that are over stay to be looked at until so many later ones are over too."""
_ORDINARY: frozenset[type[Fact]] = frozenset(entry.fact for entry in CATALOGUE)
"""Facts that were read: not unknown, unreadable or voiding."""


@dataclass(slots=True)
class Fleet(FleetTables):
    """Give it every commit of the log in order. A commit costs the same however large the fleet is."""

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
                self._apply_machine(NodeId(recorded.aggregate.key), facts, recorded.at)
            case "run":
                node, _, replica = recorded.aggregate.key.partition(".")
                self._apply_run(NodeId(node), ReplicaId(replica), recorded, facts)
            case "model":
                self._apply_model(ModelId(recorded.aggregate.key), recorded, facts)
            case "replica":
                self._apply_replica(ReplicaId(recorded.aggregate.key), recorded, facts)
            case "mesh":
                apply_mesh(self, facts, recorded)
            case "name":
                self.aliases = evolve_aliases(self.aliases, recorded, facts)
            case "inspection":
                self._apply_inspection(recorded, facts)
            case "token" | "request" | "artifact" | "key":
                pass

    def _apply_node(self, id: NodeId, recorded: Recorded, facts: Sequence[Fact]) -> None:
        view = self.nodes.get(id)
        for fact in cast("Sequence[NodeFact]", facts):
            before, view = view, evolve_node(id, view, fact, recorded.at)
            if view is not None and fact.type == "assigned":
                view = told_by(view, fact, self.models)
            follow_told(self.told, id, before, view)
            if view is not None:
                self.nodes[id] = view
                self._follow_node(id, fact, recorded)
            elif self.nodes.pop(id, None) is not None:
                self._follow_node(id, fact, recorded)
                self._touch(id)
        if view is not None:
            self.nodes[id] = changed(view, sequence=recorded.sequence)
            self._touch(id)

    def _follow_node(self, id: NodeId, fact: NodeFact, recorded: Recorded) -> None:
        """What a node's fact means for its claims and its replicas."""
        match fact.type:
            case "assigned":
                replica = fact.replica
                if any(member.node == id for member in fact.members):
                    model = self.models.get(fact.model)
                    files = model.fetched(fact.revision) if model is not None else ("", 0)
                    assignment = assignment_of(id, fact, recorded.sequence, recorded.cause, files)
                    self._assigned[id] = self.assigned(id).put(assignment)
                    self.used_recipes = after_use_of(self.used_recipes, assignment.recipe, fact.backend)
                    self._drop_run(id, replica, fact.epoch)
                    self._settle(replica)
            case "unassigned":
                assignment = self.assignment(id, fact.replica)
                if assignment is not None:
                    self._assigned[id] = self.assigned(id).put(changed(assignment, retiring=True))
                    self._settle(fact.replica)
            case "removed" | "expired":
                replicas = self._assigned.pop(id, NO_ASSIGNMENTS).assignments
                self._mark_gone(id, replicas, gone=True)
            case "offline" | "healthy":
                self._mark_gone(id, self.assigned(id).assignments, gone=self.nodes[id].gone)
            case _:
                pass

    def _apply_machine(self, id: NodeId, facts: Sequence[Fact], at: float) -> None:
        view = self.nodes.get(id)
        if view is None:
            return
        for fact in cast("Sequence[MachineFact]", facts):
            view = evolve_machine(view, fact, at)
        self.nodes[id] = view
        self._touch(id)

    def _apply_inspection(self, recorded: Recorded, facts: Sequence[Fact]) -> None:
        node, _, id = recorded.aggregate.key.partition(".")
        view = self.nodes.get(NodeId(node))
        if view is not None:
            for fact in cast("Sequence[InspectionFact]", facts):
                view = evolve_asked(view, InspectionId(id), fact)
            self.nodes[view.id] = view

    def _apply_run(self, node: NodeId, id: ReplicaId, recorded: Recorded, facts: Sequence[Fact]) -> None:
        for fact in cast("Sequence[RunFact]", facts):
            assignment = self.assignment(node, id)
            if assignment is None or assignment.epoch != fact.epoch:
                continue
            after = after_run(assignment, fact)
            if after is not assignment:
                self._assigned[node] = self.assigned(node).put(after)
                self._touch(node)
            view = self.replicas.get(id)
            if view is not None:
                run = evolve_run(node, view.runs.get(node), fact, recorded)
                if fact.type == "ready" and view.model in self.models:
                    model = self.models[view.model]
                    self.models[view.model] = after_ready_in(model, assignment.revision, assignment.recipe)
                view = self.replicas[id] = changed(view, runs={**view.runs, node: run})
            if after is not assignment or (view is not None and bool(view.broken) != (id in self.broken)):
                self._settle(id)
            elif view is not None:
                self._follow_readiness(view)

    def _apply_model(self, id: ModelId, recorded: Recorded, facts: Sequence[Fact]) -> None:
        view = self.models.get(id)
        for fact in cast("Sequence[ModelFact]", facts):
            before = view
            view = evolve_model(id, view, fact, recorded.cause)
            if view is None:
                continue
            self.models[id] = view
            if fact.type == "spec_accepted" and (files := view.files.get(fact.revision)):
                self.naming.setdefault(files, {})[id] = None
            self._follow_name(before, view)
            match fact.type:
                case "spec_accepted" | "retried":  # what is ready may be all that it wants
                    view = self.models[id] = self._with_established(view)
                case "scaled":
                    self._scale(view, fact, recorded)
                    view = self.models[id] = self._with_established(view)  # fewer may be due
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
            before, view = view, evolve_replica(view, fact)
            if isinstance(fact, Evicted) and not before.evicted:
                make_room(self, view, fact, recorded.at)
        gone = frozenset(member.node for member in view.members if self._is_gone(member.node))
        self.replicas[id] = changed(view, sequence=recorded.sequence, gone=gone)
        self._settle(id)

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
        holds = assigned = False
        for member in view.members:
            part = self.assignment(member.node, id)
            if part is not None:
                holds = holds or part.holds
                assigned = assigned or not part.retiring
        if holds != view.holds_claim:
            view = self.replicas[id] = changed(view, holds_claim=holds)
        wanted = view.wanted and not view.evicted
        _list(self.waiting, id, wanted and view.placed is None)
        if id not in self.waiting:
            self.rooms.pop(id, None)
        _list(self.leaving, id, not wanted and assigned)
        _list(self.broken, id, bool(view.broken))
        over = not wanted and not holds
        model = self.models.get(view.model)
        if model is not None:
            _list(model.replicas, id, not over)
            self._follow_readiness(view)
        _list(self.closed, id, over)
        if len(self.closed) > CLOSED_KEPT:
            self._forget(next(iter(self.closed)))

    def _follow_readiness(self, view: ReplicaView) -> None:
        """Note that a replica is ready or no longer, and what that says of its model's revisions."""
        model = self.models.get(view.model)
        ready = view.state == "ready"
        if model is None or ready == (view.id in model.ready):
            return
        _list(model.ready, view.id, ready)
        if ready:
            self.models[model.id] = self._with_established(model)

    def _with_established(self, model: ModelView) -> ModelView:
        """The model after a change of what is ready."""
        if model.established == model.revision or not model.ready:
            return model
        return after_readiness(model, [self.replicas[id].revision for id in model.ready])

    def _forget(self, id: ReplicaId) -> None:
        del self.closed[id]
        for member in self.replicas.pop(id).members:
            if member.node in self._assigned:
                self._assigned[member.node] = self._assigned[member.node].without(id)


def _list(ids: dict[ReplicaId, None], id: ReplicaId, belongs: bool) -> None:
    if belongs:
        ids.setdefault(id)
    else:
        ids.pop(id, None)
