"""Why replicas come and go, as a sentence, and the event that it follows from."""

from collections.abc import Sequence

from weft_contracts.commit import Cause
from weft_fleet import ModelView, is_elastic
from weft_requests import QUOTED, shortened

from weft_reconciler.domain.replica_status import ReplicaStatus
from weft_reconciler.domain.replica_survey import ReplicaSurvey, SurveyedReplica


def reason_of(
    model: ModelView, survey: ReplicaSurvey, retire: Sequence[SurveyedReplica], add: int, target: int
) -> tuple[str, Cause]:
    """The sentence and the cause: what went wrong, else what now serves in its place, else the count."""
    if add:
        bad = survey.of(ReplicaStatus.ENDED) + survey.stand_ins
    else:
        bad = [surveyed for surveyed in retire if surveyed.assessment.status is ReplicaStatus.ENDED]
    for surveyed in bad:
        return surveyed.assessment.why, surveyed.assessment.cause or model.cause
    if add:
        return f"{target} wanted, {len(survey.counted)} there{_asked_by(model)}", model.cause
    runs = [run for surveyed in survey.of(ReplicaStatus.SERVING) for run in surveyed.replica.runs.values()]
    latest = max(runs, key=lambda run: run.sequence, default=None)
    cause = Cause(latest.correlation_id, latest.event_id) if latest is not None else model.cause
    whys = [why for surveyed in retire if (why := surveyed.assessment.why or _replaced(model, surveyed))]
    return (f"{whys[0]}; others serve" if whys else f"more than the {target} wanted{_asked_by(model)}"), cause


def no_room(model: ModelView) -> str:
    """Why one goes before another serves in its place."""
    rules = model.rules
    beside = "there is no room for one more" if rules.max_surge else "there may be no more than should serve"
    return f"{beside}, and {rules.max_unavailable} may be missing"


def _asked_by(model: ModelView) -> str:
    """Why it has the size that it has, where what there is to do says so."""
    if model.size is None or not is_elastic(model.current.spec):
        return ""
    return f": {shortened(model.size.why, QUOTED)}"


def _replaced(model: ModelView, surveyed: SurveyedReplica) -> str:
    """Why one of the kept revision goes; empty for what is of the new one."""
    new = model.current
    if surveyed.revision is None or surveyed.revision.runs_as(new):
        return ""
    return f"revision {new.number} replaces revision {surveyed.replica.revision}"
