"""What would have to change: the smallest sets of changes after which a replica has a place."""

from weft_placement.remedies.question import Question, question_of
from weft_placement.remedies.remedy import Remedies, Remedy, Step, StepKind
from weft_placement.remedies.search import MOST_NODES, remedies, searched

__all__ = ["MOST_NODES", "Question", "Remedies", "Remedy", "Step", "StepKind", "question_of", "remedies", "searched"]
