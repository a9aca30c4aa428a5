"""Of two revisions that are each wanted on all nodes that match: which of the one goes for the other, node by node."""

from collections.abc import Iterable

from weft_contracts.ids import NodeId

from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import ReplicaSurvey, SurveyedReplica


def replaced_there(old: ReplicaSurvey, new: ReplicaSurvey, count: int) -> list[SurveyedReplica]:
    """Those of the old one on whose nodes the new one serves, so that none is without; and of those without a place
    what is more than `count`. The newest come first."""
    there = nodes_of(new.of(ReplicaStatus.SERVING))
    over = [each for each in reversed(old.counted) if each.replica.members and nodes_of([each]) <= there]
    waiting = [each for each in reversed(old.counted) if not each.replica.members]
    return over + waiting[: max(0, len(old.counted) - len(over) - max(0, count))]


def stand_ins_of(own: ReplicaSurvey, all: ReplicaSurvey) -> list[SurveyedReplica]:
    """The stand-ins, first those on nodes where nothing else serves."""
    there = nodes_of(all.of(ReplicaStatus.SERVING))
    return sorted(own.stand_ins, key=lambda each: nodes_of([each]) <= there)


def nodes_of(surveyed: Iterable[SurveyedReplica]) -> set[NodeId]:
    """The nodes that these are on."""
    return {member.node for each in surveyed for member in each.replica.members}
