"""A replica's process on one node, as its agent's events tell it."""

from dataclasses import dataclass
from typing import Literal, assert_never

from weft_contracts.commit import Recorded
from weft_contracts.facts.run import RunFact
from weft_contracts.facts.values import EngineName, MetadataFile
from weft_contracts.ids import CorrelationId, EventId, Incarnation, NodeId
from weft_contracts.states import Phase

from weft_fleet.changed import changed


@dataclass(frozen=True)
class RunView:
    """One run under the node's present assignment."""

    node: NodeId
    epoch: int
    phase: Phase
    event_id: EventId
    """The id of the run's last commit."""
    correlation_id: CorrelationId
    sequence: int
    at: float
    """When the log took that commit, in seconds since the epoch."""
    incarnation: Incarnation | None = None
    port: int | None = None
    engine: EngineName | None = None
    engine_version: str = ""
    metadata: tuple[MetadataFile, ...] = ()
    self_hosted: bool | None = None
    """See `run.Ready`."""
    reason: str = ""
    """Why it degraded, stopped or failed."""
    permanent: bool = False
    """A `failed` that would fail the same way elsewhere."""
    stopped: Literal["retired", "shutdown", "exited"] | None = None
    starts: int = 0
    backend: str = ""
    """The name of the environment that this start runs in; empty: none that its node made."""
    last_end: str = ""
    """While it starts again: why its last start ended."""
    claimed: int = 0
    used: int = 0
    """Bytes of a device that this start was said to hold beyond what is claimed; 0: it was not."""


def evolve_run(node: NodeId, run: RunView | None, fact: RunFact, recorded: Recorded) -> RunView:
    """The run after one of its facts, which counts under the present assignment."""
    stamp = changed(
        _BLANK,
        node=node,
        epoch=fact.epoch,
        event_id=recorded.event_id,
        correlation_id=recorded.correlation_id,
        sequence=recorded.sequence,
        at=recorded.at,
    )
    match fact.type:
        case "installing":
            return changed(stamp, engine=fact.engine, last_end=_last_end(run))
        case "fetching":
            return changed(stamp, phase="fetching", engine=run.engine if run else None)
        case "loading":
            engine = run.engine if run else None
            incarnation = fact.incarnation
            started = changed(stamp, phase="loading", incarnation=incarnation, engine=engine, backend=fact.backend)
            return changed(started, last_end=_last_end(run))
        case "ready":
            return changed(
                stamp,
                phase="ready",
                incarnation=fact.incarnation,
                backend=run.backend if run is not None and run.incarnation == fact.incarnation else "",
                port=fact.port,
                engine=fact.engine,
                engine_version=fact.engine_version,
                metadata=fact.metadata,
                self_hosted=fact.self_hosted,
            )
        case "degraded":
            return _still(run, stamp, "degraded", fact.incarnation, fact.why)
        case "exceeded":
            if run is None or run.incarnation != fact.incarnation:
                return run if run is not None else changed(stamp, phase="loading", incarnation=fact.incarnation)
            return changed(run, claimed=fact.claimed, used=fact.used)
        case "stopping":
            return _still(run, stamp, "stopping", fact.incarnation, "")
        case "stopped":
            return changed(stamp, phase="stopped", stopped=fact.why, reason=fact.detail or fact.why)
        case "failed":
            failed = {"reason": fact.reason, "permanent": fact.permanent, "starts": fact.starts}
            return changed(stamp, phase="failed", **failed)
        case _:
            assert_never(fact)


_BLANK = RunView(
    node=NodeId(""),
    epoch=0,
    phase="installing",
    event_id=EventId(""),
    correlation_id=CorrelationId(""),
    sequence=0,
    at=0.0,
)


def _last_end(run: RunView | None) -> str:
    """Why the last start ended, where this one follows on it."""
    if run is None:
        return ""
    return run.reason if run.stopped == "exited" else run.last_end


def _still(run: RunView | None, stamp: RunView, phase: Phase, incarnation: Incarnation, reason: str) -> RunView:
    """The same process in another phase; of another incarnation nothing else is known."""
    if run is None or run.incarnation != incarnation:
        return changed(stamp, phase=phase, incarnation=incarnation, reason=reason)
    return changed(
        run,
        phase=phase,
        reason=reason,
        event_id=stamp.event_id,
        correlation_id=stamp.correlation_id,
        sequence=stamp.sequence,
        at=stamp.at,
    )
