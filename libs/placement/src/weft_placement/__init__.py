"""Where a replica goes and why: filters, fit, scores and choice, each a pure function over the fleet."""

from weft_placement.board import Board
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import Circumstances, NoPlace, Placement, choose, decide_placement
from weft_placement.explain import Explanation, NodeAnswer, NotInTheLog, explain, explain_decision
from weft_placement.outlook import Outlook
from weft_placement.policy import BadPolicy, Policy, parse_policy
from weft_placement.trial import Trial, try_out

__all__ = [
    "BadPolicy",
    "Board",
    "Circumstances",
    "ClaimUnknown",
    "Explanation",
    "NoPlace",
    "NodeAnswer",
    "NotInTheLog",
    "Outlook",
    "Placement",
    "Policy",
    "Trial",
    "choose",
    "decide_placement",
    "explain",
    "explain_decision",
    "parse_policy",
    "try_out",
]
