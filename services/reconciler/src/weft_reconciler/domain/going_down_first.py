"""Which replica of the kept revision goes before another serves in its place: where one more has no room."""

from collections.abc import Container, Sequence

from weft_fleet import ModelView

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.eligible_nodes import eligible_nodes
from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import ReplicaSurvey, SurveyedReplica
from weft_reconciler.domain.rollout import Rollout
from weft_reconciler.domain.state import State


def going_down_first(
    state: State,
    model: ModelView,
    rollout: Rollout,
    survey: ReplicaSurvey,
    target: int,
    least: int,
    time: DecisionTime,
) -> SurveyedReplica | None:
    """The one that makes room, or None. Only where the rollout allows it, one at a time, and only from a node where one
    of the new revision may go now: none goes while any that should serve is missing already.

    `target`, `least`: how many there should be of the new revision, and of the kept one while none of the new serves.
    """
    new, old = rollout.new, rollout.old
    if old is None or not model.rules.max_unavailable or state.fleet.brake is not None:
        return None
    of_new, of_old = survey.counting_for(new), survey.counting_for(old)
    answering = of_new.of(ReplicaStatus.SERVING) + of_old.of(ReplicaStatus.SERVING, ReplicaStatus.OUTGOING)
    if len(answering) < max(1, least) or of_old.of(ReplicaStatus.UNKNOWN):
        return None
    if not _lacks_room(model, of_new, survey, max(target, least), target):
        return None
    avoided: set[str] = set(state.failures.recent(model, new, time))
    avoided.update(node for each in of_new.of(ReplicaStatus.STARTING) for node in each.replica.avoid)
    able: set[str] = {node.id for node in eligible_nodes(state.fleet, model.id, new) if node.takes_replicas}
    return _newest_on(of_old.of(ReplicaStatus.SERVING), able - avoided)


def _lacks_room(model: ModelView, of_new: ReplicaSurvey, survey: ReplicaSurvey, most: int, target: int) -> bool:
    """Whether the next of the new revision has no place on any node, or none beside those that should serve."""
    coming = of_new.of(ReplicaStatus.STARTING)
    if coming:
        return all(each.replica.state == "unplaceable" for each in coming)
    return len(of_new.counted) < target and len(survey.all) >= most + model.rules.max_surge


def _newest_on(serving: Sequence[SurveyedReplica], nodes: Container[str]) -> SurveyedReplica | None:
    there = (each for each in reversed(serving) if all(member.node in nodes for member in each.replica.members))
    return next(there, None)
