"""A plan as the API shows it."""

import weft_api as api
from weft_placement.plan import Plan


def plan_shape(plan: Plan, position: int) -> api.Plan:
    """All of it, in its order."""
    return {
        "position": position,
        "placements": [
            {
                "model": each.model,
                "replica": each.replica,
                "rung": each.rung,
                "policy": each.policy,
                "score": each.score,
                "scores": dict(each.scores),
                "members": [
                    {
                        "node": member.node,
                        "rank": member.rank,
                        "ram": member.ram,
                        "gpus": {str(index): size for index, size in member.gpus.items()},
                    }
                    for member in each.members
                ],
                "layers": each.layers,
                "passed_over": list(each.passed_over),
            }
            for each in plan.placements
        ],
        "refused": [
            {
                "model": each.model,
                "replica": each.replica,
                "reason": each.reason,
                "rungs": dict(each.rungs),
                "nodes": dict(each.nodes),
                "need": each.need,
                "available": each.available,
            }
            for each in plan.refused
        ],
    }
