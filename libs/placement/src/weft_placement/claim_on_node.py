"""One node alone: what its devices have free, and whether it could take one more replica of a model."""

from dataclasses import dataclass

from weft_contracts.facts.values import Vendor
from weft_fleet import ModelView, NodeAssignments, NodeView

from weft_placement.demand import demand_of
from weft_placement.device_memory import reserved
from weft_placement.fit import LADDER
from weft_placement.kept_recipe import recipes_for
from weft_placement.node_evaluator import Candidate, NodeEvaluator
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One device's memory, in bytes."""

    index: int
    vendor: Vendor
    memory: int
    claimed: int
    others: int
    """What others hold: measured, or reserved for them."""
    free: int


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The node's answer about one more replica of a model."""

    refusal: str | None
    """Why not; None: it could take it."""
    rung: str = ""
    score: float = 0.0


def device_uses(node: NodeView, assigned: NodeAssignments) -> list[DeviceUse]:
    """All of a node's devices, whatever engines can use them; empty where it reported none."""
    found: list[DeviceUse] = []
    for device in node.hardware.devices if node.hardware is not None else ():
        claimed = assigned.claims.get(device.index, 0)
        others = max(reserved(device), node.pressure.get(device.index, 0))
        free = max(device.memory - claimed - others, 0)
        found.append(DeviceUse(device.index, device.vendor, device.memory, claimed, others, free))
    return found


def model_answer(planned_fleet: PlannedFleet, node: NodeView, model: ModelView, policy: Policy) -> ModelAnswer:
    """Raises ClaimUnknown. Cost: one node's evaluation."""
    fleet = planned_fleet.fleet
    recipes = recipes_for(fleet, model.id, model.revision)
    demand = demand_of(model.id, model.revision, model.spec, policy, fleet.engines, recipes)
    evaluation = NodeEvaluator(demand, policy).evaluate(node, planned_fleet.assigned(node.id))
    if isinstance(evaluation, Candidate):
        return ModelAnswer(None, LADDER[evaluation.rung].name, evaluation.score)
    return ModelAnswer(evaluation.reason)
