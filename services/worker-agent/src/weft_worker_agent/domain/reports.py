"""What the log lacks about this node's runs.

Reports are the difference between what the log says and what is: nothing is queued. So what could not be
appended while the log was away is said when it is back, in order, at most one report a run at a time, and what
has passed by then needs no report at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft_contracts.commit import Cause
from weft_contracts.facts import run
from weft_contracts.facts.run import RunFact
from weft_contracts.ids import ReplicaId

from weft_worker_agent.domain.claim_use import GROWS
from weft_worker_agent.domain.hosts import Host
from weft_worker_agent.domain.own_part import PREPARES, Assignment, OwnPart, RunRecord
from weft_worker_agent.domain.restarts import Tries

MAX_SENTENCE = 2000
"""Characters of an engine's reason that go into the log."""
VANISHED = "its worker ended without a word"


@dataclass(frozen=True, slots=True)
class Report:
    """One fact about a run that is to be appended, and why."""

    replica: ReplicaId
    fact: RunFact
    cause: Cause


def missing_reports(
    part: OwnPart, hosts: Iterable[Host], tries: Mapping[ReplicaId, Tries], *, shutdown: bool = False
) -> list[Report]:
    """The next report of each run whose record differs from what is."""
    by_replica: dict[ReplicaId, list[Host]] = {}
    for host in hosts:
        by_replica.setdefault(host.replica, []).append(host)
    reports: list[Report] = []
    for replica, assignment in part.assignments.items():
        own = [h for h in by_replica.get(replica, ()) if h.epoch == assignment.epoch]
        record = part.runs.get(replica)
        if record is not None and record.epoch != assignment.epoch:
            record = None
        living = next((h for h in own if h.lives), None)
        if living is None and any(h.lives for h in by_replica.get(replica, ())):
            continue  # one of an older epoch still ends
        if living is not None:
            report = _of_living(assignment, record, living)
        else:
            report = _of_none(assignment, record, own, tries.get(replica), shutdown)
        if report is not None:
            reports.append(report)
    return reports


def _of_living(assignment: Assignment, record: RunRecord | None, host: Host) -> Report | None:
    replica, epoch, incarnation = assignment.replica, assignment.epoch, host.incarnation
    if host.installing:
        if record is not None and record.phase == "installing":
            return None
        installing = run.Installing(epoch=epoch, engine=assignment.fact.spec.engine)
        return Report(replica, installing, assignment.cause)
    if host.fetching is not None:
        if record is not None and record.phase == "fetching":
            return None
        return Report(replica, run.Fetching(epoch=epoch, bytes=host.fetching), assignment.cause)
    if record is None or not record.open or record.incarnation != incarnation:
        loading = run.Loading(epoch=epoch, incarnation=incarnation, backend=host.backend)
        return Report(replica, loading, assignment.cause)
    if host.retire_at is not None:
        if record.phase == "stopping":
            return None
        cause = assignment.retirement.cause if assignment.retirement is not None else record.cause
        return Report(replica, run.Stopping(epoch=epoch, incarnation=incarnation), cause)
    if host.answering is None:
        return None
    if host.trouble and record.phase == "ready":
        return Report(replica, run.Degraded(epoch=epoch, incarnation=incarnation, why=_cut(host.trouble)), record.cause)
    if host.trouble:
        return None
    if host.stalled:
        if record.phase != "ready":
            return None
        degraded = run.Degraded(epoch=epoch, incarnation=incarnation, why=host.stalled)
        return Report(replica, degraded, record.cause)
    if record.phase == "ready":
        return _of_use(record, host)
    ready = run.Ready(
        epoch=epoch,
        incarnation=incarnation,
        port=host.answering.port,
        engine=host.answering.engine,
        engine_version=host.answering.engine_version,
        metadata=host.answering.metadata,
        self_hosted=host.answering.self_hosted if host.answering.metadata else None,
    )
    return Report(replica, ready, record.cause)


def _of_use(record: RunRecord, host: Host) -> Report | None:
    """That it holds more than it claims, unless the log was told as much."""
    use = host.use
    if use is None or use.exceeds <= GROWS * record.exceeded:
        return None
    fact = run.Exceeded(
        epoch=host.epoch, incarnation=host.incarnation, device=use.device, claimed=use.claimed, used=use.exceeds
    )
    return Report(host.replica, fact, record.cause)


def _of_none(
    assignment: Assignment,
    record: RunRecord | None,
    ended: list[Host],
    tries: Tries | None,
    shutdown: bool,
) -> Report | None:
    replica, epoch = assignment.replica, assignment.epoch
    host = next((h for h in ended if record is not None and h.incarnation == record.incarnation), None)
    preparing = record is not None and record.phase in PREPARES
    if preparing:
        host = next((h for h in reversed(ended) if h.epoch == epoch), None)
    end = host.end if host is not None else None
    detail, unfinished = (_cut(end.reason), end.unfinished) if end is not None else (VANISHED, 0)
    if assignment.retirement is not None:
        stopping = record is not None and record.phase == "stopping"
        cause = record.cause if record is not None and stopping else assignment.retirement.cause
        return Report(replica, run.Stopped(epoch=epoch, why="retired", unfinished=unfinished), cause)
    given_up = tries.given_up if tries is not None and tries.epoch == epoch else None
    if given_up is not None:
        if record is not None and record.phase == "failed":
            return None
        assert tries is not None
        failed = run.Failed(
            epoch=epoch,
            reason=_cut(given_up.reason),
            permanent=given_up.permanent,
            starts=tries.total,
            last_lines=given_up.last_lines,
        )
        return Report(replica, failed, record.cause if record is not None else assignment.cause)
    if record is None or not record.open or (preparing and end is None and not shutdown):
        return None  # an install or a fetch that its agent didn't live to see the end of is begun again
    if shutdown:
        return Report(replica, run.Stopped(epoch=epoch, why="shutdown", unfinished=unfinished), record.cause)
    lines = end.last_lines if end is not None else ()
    return Report(replica, run.Stopped(epoch=epoch, why="exited", detail=detail, last_lines=lines), record.cause)


def _cut(sentence: str) -> str:
    return sentence if len(sentence) <= MAX_SENTENCE else sentence[: MAX_SENTENCE - 1] + "…"
