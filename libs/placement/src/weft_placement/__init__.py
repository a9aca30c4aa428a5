"""Where a replica goes and why: filters, fit, scores and choice, each a pure function over the fleet."""

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import Circumstances, NoPlace, Placement, choose, decide_placement
from weft_placement.dry_run import DryRun, dry_run
from weft_placement.explain import Explanation, NodeAnswer, NotInTheLog, explain, explain_decision
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import BadPolicy, Policy, parse_policy

__all__ = [
    "BadPolicy",
    "CandidateRanking",
    "Circumstances",
    "ClaimUnknown",
    "DryRun",
    "Explanation",
    "NoPlace",
    "NodeAnswer",
    "NotInTheLog",
    "Placement",
    "PlannedFleet",
    "Policy",
    "choose",
    "decide_placement",
    "dry_run",
    "explain",
    "explain_decision",
    "parse_policy",
]
