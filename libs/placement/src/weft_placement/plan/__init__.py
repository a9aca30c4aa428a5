"""Would it fit: models placed on a fleet that a file tells, by the functions that place them in a mesh."""

from weft_placement.plan.faults import PlanFault
from weft_placement.plan.live import MOST_LIVE, live_outcomes
from weft_placement.plan.planning import planned
from weft_placement.plan.reading import plan_of
from weft_placement.plan.results import Plan, Planned, PlannedMember, Refused, plan_of_outcomes

__all__ = [
    "MOST_LIVE",
    "Plan",
    "PlanFault",
    "Planned",
    "PlannedMember",
    "Refused",
    "live_outcomes",
    "plan_of",
    "plan_of_outcomes",
    "planned",
]
