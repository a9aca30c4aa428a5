"""Where a replica goes and why: filters, fit, scores and choice, each a pure function over the fleet."""

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.chosen_policy import chosen_policy, policy_named
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import Circumstances, NoPlace, Placement, choose, decide_placement
from weft_placement.dry_run import DryRun, dry_run, one_more
from weft_placement.explain import Explanation, NotInTheLog, explain, explain_decision
from weft_placement.node_answers import NodeAnswer
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import BALANCED, BINPACK, BUILTIN_POLICIES, SPREAD, BadPolicy, Policy, parse_policy

__all__ = [
    "BALANCED",
    "BINPACK",
    "BUILTIN_POLICIES",
    "SPREAD",
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
    "chosen_policy",
    "decide_placement",
    "dry_run",
    "explain",
    "explain_decision",
    "one_more",
    "parse_policy",
    "policy_named",
]
