"""A model's wanted replicas, each with its status and the revision that it counts for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft_fleet import ModelView, ReplicaView, Revision

from weft_reconciler.domain.decision_time import DecisionTime
from weft_reconciler.domain.replica_status import Assessment, ReplicaStatus, assess
from weft_reconciler.domain.rollout import Rollout
from weft_reconciler.domain.spread_nodes import SpreadCount, spread_count
from weft_reconciler.domain.state import State


@dataclass(frozen=True, slots=True)
class SurveyedReplica:
    """A wanted replica, its status, and what it counts for."""

    replica: ReplicaView
    assessment: Assessment
    revision: Revision | None
    """What it counts for; None where it is superseded."""


@dataclass(frozen=True, slots=True)
class ReplicaSurvey:
    """Wanted replicas of a model, oldest first."""

    all: tuple[SurveyedReplica, ...]
    spread: Mapping[int, SpreadCount] = field(default_factory=dict[int, SpreadCount])
    """By the number of a revision that is wanted on all nodes that match: how many these are."""

    def of(self, *statuses: ReplicaStatus) -> list[SurveyedReplica]:
        """Those that have one of these statuses."""
        return [surveyed for surveyed in self.all if surveyed.assessment.status in statuses]

    def counting_for(self, *revisions: Revision | None) -> "ReplicaSurvey":
        """The part of it that counts for these revisions."""
        return ReplicaSurvey(tuple(each for each in self.all if each.revision in revisions), self.spread)

    @property
    def settled(self) -> bool:
        """Whether only what happens to these replicas can change their statuses; time, the brake's end or another
        node can't."""
        steady = self.of(ReplicaStatus.SERVING, ReplicaStatus.STARTING)
        return len(steady) == len(self.all) and not any(each.assessment.waits for each in steady)

    @property
    def counted(self) -> list[SurveyedReplica]:
        """Those that serve or may yet."""
        return self.of(ReplicaStatus.SERVING, ReplicaStatus.STARTING, ReplicaStatus.UNKNOWN)

    @property
    def stand_ins(self) -> list[SurveyedReplica]:
        """Those that stay only until others serve in their place, the most useful first."""
        return self.of(ReplicaStatus.OUTGOING) + self.of(ReplicaStatus.LOST)


def survey_replicas(state: State, model: ModelView, rollout: Rollout, time: DecisionTime) -> ReplicaSurvey:
    """Assess every wanted replica of a model."""
    replicas = (state.fleet.replicas[id] for id in model.replicas)
    found: list[SurveyedReplica] = []
    for view in sorted((view for view in replicas if view.wanted), key=lambda view: view.number):
        revision = rollout.of(model.of(view.revision))
        found.append(SurveyedReplica(view, assess(state, model, view, revision, time), revision))
    survey = ReplicaSurvey(tuple(found))
    spread = [revision for revision in rollout.revisions if revision.spec.spread_all]
    counts: dict[int, SpreadCount] = {}
    for revision in spread:
        counted = (each.replica for each in survey.counting_for(revision).counted)
        counts[revision.number] = spread_count(state, model, revision, counted, time)
    return replace(survey, spread=counts) if spread else survey
