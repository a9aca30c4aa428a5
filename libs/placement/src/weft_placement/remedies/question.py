"""What is asked: a replica that has no place in a fleet, by what it demands."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft_contracts.backends import Recipes
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId
from weft_fleet import Fleet, NodeAssignments, NodeView, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import demand_for
from weft_placement.demand import Demand, demand_of
from weft_placement.eviction.rooms import give_room, hold_rooms
from weft_placement.fleet_copy import planned_copy, with_nodes
from weft_placement.kept_recipe import recipes_for
from weft_placement.node_evaluator import Candidate, Evaluation, NodeEvaluator
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy
from weft_placement.set_aside import SetAside


@dataclass(frozen=True, slots=True)
class Question:
    """One replica's. `fleet` is a copy that nobody changes."""

    fleet: Fleet
    demand: Demand
    policy: Policy
    recipes: Recipes
    without: frozenset[NodeId] = frozenset()
    """Nodes that it must not go to, whatever changes there."""

    def answer(self, node: NodeView, assigned: NodeAssignments, demand: Demand | None = None) -> Evaluation:
        """What a node would answer, were it so."""
        return NodeEvaluator(demand or self.demand, self.policy).evaluate(node, assigned)

    def demand_of(self, spec: ModelSpec) -> Demand | None:
        """What it would ask, were its spec this one; None: that can't be computed."""
        own = self.demand
        try:
            return demand_of(own.model, own.revision, spec, self.policy, self.fleet.engines, self.recipes)
        except ClaimUnknown:
            return None

    def place(self, nodes: Iterable[tuple[NodeView, NodeAssignments]], demand: Demand | None = None) -> str | None:
        """The name of the node that the ranking of these nodes, as they are told here, puts it on; None: nowhere.

        All others of the fleet are left out: they refuse it as they are.
        """
        changed = with_nodes(self.fleet, nodes)
        ranking = CandidateRanking(demand or self.demand, self.policy)
        ranking.sync(PlannedFleet(changed))
        best = ranking.best(dict.fromkeys(self.without, ""))
        if best is None:
            return None
        return changed.nodes[best.node if isinstance(best, Candidate) else best.parts[0].node].name


def question_of(
    fleet: Fleet, replica: ReplicaView, policy: Policy, set_aside: SetAside | None = None, *, now: float
) -> Question:
    """What a replica of a model of this fleet asks, of a copy of it. `set_aside`: nodes that nothing is placed on, and
    why. `now`: seconds since the epoch; room that is kept until later for others is taken. Raises ClaimUnknown."""
    demand, recipes = demand_for(fleet, replica, policy), recipes_for(fleet, replica.model, replica.revision)
    planned_fleet = PlannedFleet(fleet)
    hold_rooms(planned_fleet, now)
    give_room(planned_fleet, replica)
    without = frozenset(NodeId(id) for id in (*replica.avoid, *(set_aside or {})))
    return Question(planned_copy(planned_fleet), demand, policy, recipes, without)
