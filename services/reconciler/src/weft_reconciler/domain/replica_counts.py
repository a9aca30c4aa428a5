"""How many replicas of each revision there should be."""

from weft_fleet import ModelView, Revision, is_open, within_bounds

from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import ReplicaSurvey
from weft_reconciler.domain.rollout import Rollout

ADDED_AT_ONCE = 32
"""Replicas that one commit adds of a revision: as many as the scheduler places in one batch."""
RETIRED_AT_ONCE = 512
"""Replicas that one commit retires: their ids take some 16 KiB. The next round goes on."""


def wanted_count(model: ModelView, rollout: Rollout, survey: ReplicaSurvey) -> int:
    """How many should serve: one on each node that matches, where that is wanted; else the minimum, or as many more as
    what there is to do asks for; and one where something that served would go without, unless all were let go."""
    if rollout.new.spec.spread_all:
        return survey.spread[rollout.new.number].now
    served = (rollout.old is not None or survey.stand_ins) and not model.asleep
    return max(_sized(model, rollout.new), 1 if served else 0)


def due_count(model: ModelView, rollout: Rollout, survey: ReplicaSurvey) -> int:
    """How many of the new revision must serve before it is established: those, and one on each node where one failed
    of late. A size that changes meanwhile and a node that joins or leaves count at once."""
    if rollout.new.spec.spread_all:
        return survey.spread[rollout.new.number].all
    return wanted_count(model, rollout, survey)


def kept_count(model: ModelView, old: Revision, survey: ReplicaSurvey) -> int:
    """How many the kept revision should have where none of the new one serves yet."""
    if old.spec.spread_all:
        return survey.spread[old.number].now
    return 0 if model.asleep else max(old.least, _sized(model, old))


def _sized(model: ModelView, revision: Revision) -> int:
    return within_bounds(revision.spec, 0 if model.size is None else model.size.replicas)


def missing(own: ReplicaSurvey, target: int, most: int, beside: int, surge: int = 1) -> int:
    """How many to add now. While others serve that these replace, all together are as many more than `most` as the
    rollout allows; where it allows any, one at least is always on its way."""
    counted = len(own.counted)
    lacking = target - counted
    if beside:
        coming = counted - len(own.of(ReplicaStatus.SERVING))
        lacking = min(lacking, max(most + surge - counted - beside, min(surge, 1) - coming))
    return max(0, min(lacking, ADDED_AT_ONCE))


def must_tell(model: ModelView, rollout: Rollout, survey: ReplicaSurvey) -> bool:
    """Whether the fold doesn't know how many of a new revision make it established: nodes or demand say how many."""
    if rollout.old is None or not model.replacing or not is_open(rollout.new.spec):
        return False
    return model.told != due_count(model, rollout, survey)
