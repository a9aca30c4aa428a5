"""What the agent keeps of one engine host, beside what the rules see of it, and what it hears of it."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import Incarnation, NodeId, ReplicaId
from weft_contracts.signals import ReplicaLoad
from weft_runtime.logs import get_logger

from weft_worker_agent.domain.hosts import PERMANENT_EXIT, Answering, End, Host
from weft_worker_agent.domain.last_lines import last_lines
from weft_worker_agent.domain.loading import Progress
from weft_worker_agent.domain.process_ends import MemoryKills, sentence_of
from weft_worker_agent.domain.stall import Pulse, StallBounds, heard, passed, stall_of
from weft_worker_agent.outbound.files.metadata import Offer
from weft_worker_agent.outbound.processes.host_watch import HostWatch, Secured
from weft_worker_agent.outbound.processes.launch import LaunchIdentity, Status
from weft_worker_agent.outbound.processes.load_progress import Activity
from weft_worker_agent.outbound.processes.supervisor_client import SupervisedHost

T = TypeVar("T")
_log: Any = get_logger("weft.hosts")


@dataclass(frozen=True, slots=True)
class HostContext:
    """What all hosts of this node have in common."""

    node: NodeId
    address: str
    """Where engines listen."""
    tls_folder: Path | None
    """The node's certificate, which hosts show; None: they speak plainly."""
    clock: Callable[[], float]
    wake: Callable[[], None]
    """Called when rules have something to look at."""
    self_host: bool = True
    """Whether the node's server offers the metadata files of its runs."""


@dataclass(frozen=True, slots=True)
class LoadingHost:
    """One whose engine takes its weights: `size` bytes of a model's files."""

    replica: ReplicaId
    incarnation: Incarnation
    pid: int
    model: Path
    size: int


@dataclass(slots=True)
class HostEntry:
    """One host: what the rules see, its process, its stream, its metadata files."""

    host: Host
    identity: LaunchIdentity
    context: HostContext
    supervised: bool = False
    """Whether the supervisor knows it: then it can be signalled and reaped there."""
    pid: int | None = None
    progress: Progress | None = None
    watch: HostWatch | None = None
    status: Status = Status()  # noqa: RUF009 - frozen
    port: int = 0
    """Set for it to listen on; 0: it chooses."""
    offers: tuple[Offer, ...] | None = None
    """None: not looked for yet."""
    pulse: Pulse = Pulse()  # noqa: RUF009 - frozen
    activity: Activity | None = None
    """Of its processes at the last look; None: it was not looked at."""
    load: ReplicaLoad | None = None
    held: int | None = None
    """A descriptor that keeps the environment that it runs in from being removed."""
    model: Path | None = None
    """The file or folder that it loads; None: none, or not looked for yet."""
    model_bytes: int = 0
    memory: dict[int, int] = field(default_factory=dict[int, int])
    """Bytes that its processes hold of each device that it claims, as far as they are told."""
    waits: "asyncio.Future[Any] | None" = None
    """What goes on before its process begins and is of no use without it."""
    told: dict[str, int] = field(default_factory=dict[str, int])
    """Which version of each secret it has; empty for an adopted one, which is told anew."""

    @property
    def loads(self) -> LoadingHost | None:
        """None where it doesn't load, or loads nothing."""
        host = self.host
        if not host.lives or host.answering is not None or self.pid is None or self.model is None:
            return None
        return LoadingHost(host.replica, host.incarnation, self.pid, self.model, self.model_bytes)

    def heard_line(self, status: Status) -> None:
        """A status line of a host, or the same one again."""
        self.status = status
        host = self.host
        if not host.lives:
            return
        if status.port is not None and self.watch is None:
            target = target_of(self.context.address, status.port)
            secured = None if self.context.tls_folder is None else Secured(self.context.tls_folder, self.context.node)
            self.watch = HostWatch(target, host.incarnation, self._heard, secured=secured)
            if host.retire_at is not None:
                self.watch.retire()
        if status.phase == "ready" and host.answering is None and self.offers is not None:
            if status.port is not None and status.engine is not None:
                files = tuple(offer.file for offer in self.offers)
                engine, version = status.engine, status.engine_version
                answering = Answering(status.port, engine, version, files, self.context.self_host)
                self.host = replace(host, answering=answering)
                self.context.wake()
        elif status.phase == "failed" and host.failing_since is None:
            self.host = replace(host, failing_since=self.context.clock())
            self.context.wake()

    def _heard(self, status: pb.HostStatus) -> None:
        """A status on the watch stream."""
        trouble = status.reason if status.phase == pb.PHASE_READY else ""
        if trouble != self.host.trouble:
            self.host = replace(self.host, trouble=trouble)
            self.context.wake()
        self._heard_status(status)

    def _heard_status(self, status: pb.HostStatus) -> None:
        """A status on the watch stream: the load."""
        load = status.load
        self.pulse = heard(self.pulse, busy=load.running + load.waiting > 0, steps=load.steps)
        self.load = ReplicaLoad(
            replica=self.host.replica,
            running=load.running,
            waiting=load.waiting,
            kv_used=round(load.kv_used, 4),
            steps=load.steps,
        )

    def time_passed(self, seconds: float, bounds: StallBounds, *, computes: bool) -> None:
        """So much time went by in which the agent listened. Only what has answered once can stall: before, it loads."""
        if self.host.answering is None:
            self.pulse = Pulse()
            return
        self.pulse = passed(self.pulse, seconds, computes=computes)
        why = stall_of(self.pulse, bounds)
        if bool(why) == bool(self.host.stalled):
            return
        at = self.context.clock() if why else float("inf")
        self.host = replace(self.host, stalled=why, stalled_at=at)
        if why:
            _log.warning("host stalls", replica=self.host.replica, incarnation=self.host.incarnation, why=why)
        self.context.wake()

    def ended(self, supervised: SupervisedHost, kills: MemoryKills) -> None:
        """Its process has ended, as the supervisor says. `kills`: what the kernel killed for memory of late."""
        status = self.status
        last = next((line for line in reversed(supervised.stderr) if line.strip()), "")
        permanent = supervised.exit_code == PERMANENT_EXIT or (status.phase == "failed" and status.permanent)
        reason = sentence_of(supervised.exit_code, status.reason, last, kills, by_us=self.host.term_at is not None)
        if self.host.ended_for and not status.reason:
            hard = ", and it did not end when asked to" if self.host.kill_at is not None else ""
            reason = f"its worker ended it: {self.host.ended_for}{hard}"
        unfinished = status.unfinished
        if self.host.kill_at is not None and self.load is not None:  # it could not say so itself
            unfinished = unfinished or self.load.running + self.load.waiting
        lines = last_lines(supervised.stderr)
        outside = status.outside and not permanent
        self.set_end(
            End(supervised.exit_code, reason, permanent, unfinished=unfinished, outside=outside, last_lines=lines)
        )
        _log.info(
            "host ended",
            replica=self.host.replica,
            incarnation=self.host.incarnation,
            status=supervised.exit_code,
            asked=self.host.retire_at is not None,
        )

    def set_end(self, end: End) -> None:
        """It is over, or was never started."""
        self.host = replace(self.host, end=end, installing=False, fetching=None)
        if self.waits is not None:
            self.waits.cancel()
        self.load = None
        if self.held is not None:
            os.close(self.held)
            self.held = None
        if self.watch is not None:
            self.watch.close()
            self.watch = None
        self.context.wake()

    async def unless_ended(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What comes of some work; None where the host's end comes first, which cancels it. Raises what it raises."""
        task = self.waits = asyncio.create_task(work)
        try:
            if not self.host.lives:
                task.cancel()
            await asyncio.wait({task})
        finally:
            self.waits = None
            task.cancel()
        return None if task.cancelled() else task.result()

    def retire(self, within: float) -> None:
        """Have it end what it answers, within so many seconds."""
        now = self.context.clock()
        self.host = replace(self.host, retire_at=now, retire_within=within)
        if self.host.prepares:
            what = "its engine was installed" if self.host.installing else "its model was fetched"
            self.set_end(End(None, f"retired before {what}", permanent=False))
            return
        if self.watch is not None:
            self.watch.retire()
        _log.info("host retires", replica=self.host.replica, incarnation=self.host.incarnation, within=within)
        self.context.wake()


def target_of(address: str, port: int) -> str:
    """Where the agent itself reaches an engine: one that listens everywhere, by loopback."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
    return f"[{here}]:{port}" if ":" in here else f"{here}:{port}"
