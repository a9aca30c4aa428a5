"""Any life of a node, played through: whatever happens, what runs follows the log and the log follows what runs."""

from dataclasses import dataclass, field, replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from weft_contracts import subjects
from weft_contracts.commit import Commit, Decision, Guard, Recorded
from weft_contracts.facts import run
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.node import Assigned, Unassigned
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import DeviceClaim, Member, ModelSpec
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId
from weft_contracts.subjects import Aggregate
from weft_testing import HandLog
from weft_worker_agent.domain.hosts import Answering, End, Host
from weft_worker_agent.domain.own_part import OwnPart, evolve
from weft_worker_agent.domain.reports import missing_reports
from weft_worker_agent.domain.restarts import MAX_RESTARTS, WINDOW_S, Tries
from weft_worker_agent.domain.steering import Forget, Retire, Signal, Start, steer

NODE = NodeId("n-aaaaaaaaaaaaaaaa")
REPLICAS = [ReplicaId("m-x-1"), ReplicaId("m-x-2")]
HAPPENINGS = [
    *("assign", "unassign", "ready", "ready", "crash", "crash", "crash", "bad", "stall"),
    *("outage", "back", "agent", "machine", "wait"),
]
happenings = st.lists(
    st.tuples(st.sampled_from(HAPPENINGS), st.sampled_from(REPLICAS), st.sampled_from([0.0, 1.0, 40.0, 400.0])),
    min_size=8,
    max_size=60,
)


@dataclass
class Life:
    """A node without processes: hosts are values, time is a number, the log lies in the hand."""

    log: HandLog = field(default_factory=HandLog)
    part: OwnPart = field(default_factory=OwnPart)
    folded: int = 0
    sequences: dict[Aggregate, int] = field(default_factory=dict[Aggregate, int])
    hosts: dict[Incarnation, Host] = field(default_factory=dict[Incarnation, Host])
    tries: dict[ReplicaId, Tries] = field(default_factory=dict[ReplicaId, Tries])
    now: float = 0.0
    away: bool = False
    epochs: dict[ReplicaId, int] = field(default_factory=dict[ReplicaId, int])
    started: int = 0
    starts: list[tuple[float, ReplicaId, int]] = field(default_factory=list[tuple[float, ReplicaId, int]])
    """Of this agent's life: the bound is kept in its memory."""

    def turn(self) -> None:
        """Fold, steer, report, until nothing follows any more."""
        for _ in range(50):
            if not self.away:
                self._fold()
            if not self._steer() and (self.away or not self._report()):
                return
        raise AssertionError("it never comes to rest")

    def happen(self, what: str, replica: ReplicaId, seconds: float) -> None:
        living = [h for h in self.hosts.values() if h.lives and h.replica == replica]
        wanted = self.part.assignments.get(replica)
        match what:
            case "assign" if wanted is None or wanted.retirement is not None:
                self.epochs[replica] = self.epochs.get(replica, 0) + 1
                self.log.given(subjects.node(NODE), assignment(replica, self.epochs[replica]))
            case "unassign":
                unassigned = Unassigned(replica=replica, deadline_s=10, why="-")
                self.log.given(subjects.node(NODE), unassigned)
            case "ready":
                for host in living:
                    self.hosts[host.incarnation] = replace(host, answering=Answering(1, "simulated", "1", ()))
            case "crash" | "bad":
                for host in living:
                    self.end(host, permanent=what == "bad")
            case "stall":
                for host in living:
                    if host.answering is not None:
                        why = "" if host.stalled else "it stands still"
                        self.hosts[host.incarnation] = replace(host, stalled=why, stalled_at=self.now)
            case "outage" | "back":
                self.away = what == "outage"
            case "agent":
                self.restart_agent()
            case "machine":
                self.hosts = {}
                self.restart_agent()
            case _:
                pass
        self.turn()
        self.now += seconds
        self.turn()

    def end(self, host: Host, *, permanent: bool = False) -> None:
        self.hosts[host.incarnation] = replace(host, end=End(1, "it fell", permanent))

    def restart_agent(self) -> None:
        """What the agent knew is gone; the supervisor still has the hosts. It folds before it decides."""
        self.tries = {}
        self.hosts = {
            id: replace(host, started_at=self.now, retire_at=None, term_at=None, kill_at=None)
            for id, host in self.hosts.items()
        }
        self.part, self.folded, self.sequences = OwnPart(), 0, {}
        self.away = False
        self.starts = []

    def settle(self) -> None:
        """The log is back, hosts come up or obey, time passes."""
        self.away = False
        for _ in range(40):
            self.turn()
            self.now += 20.0
            for host in list(self.hosts.values()):
                if host.lives and host.retire_at is not None:
                    self.end(host)
                elif host.lives:
                    answering = Answering(1, "simulated", "1", ())
                    self.hosts[host.incarnation] = replace(host, answering=answering, stalled="")
        self.turn()

    def _fold(self) -> None:
        for commit in self.log.commits[self.folded :]:
            self.part = evolve(self.part, commit)
            self.sequences[commit.aggregate] = commit.sequence
        self.folded = len(self.log.commits)

    def _steer(self) -> bool:
        steering = steer(self.part, self.hosts.values(), self.tries, self.now)
        self.tries = dict(steering.tries)
        for action in steering.actions:
            match action:
                case Start(assignment=start):
                    self._start(start.replica, start.epoch)
                case Retire(incarnation=id, within_s=within):
                    self.hosts[id] = replace(self.hosts[id], retire_at=self.now, retire_within=within)
                case Signal(incarnation=id, signal="TERM"):
                    self.hosts[id] = replace(self.hosts[id], term_at=self.now)
                case Signal(incarnation=id):
                    self.hosts[id] = replace(self.hosts[id], kill_at=self.now)
                    self.end(self.hosts[id])
                case Forget(incarnation=id):
                    assert not self.hosts[id].lives
                    del self.hosts[id]
        return bool(steering.actions)

    def _start(self, replica: ReplicaId, epoch: int) -> None:
        assert not any(host.lives and host.replica == replica for host in self.hosts.values())
        retirement = self.part.assignments[replica].retirement
        assert retirement is None
        record = self.part.runs.get(replica)
        assert record is None or (record.epoch, record.phase) != (epoch, "failed")
        self.starts.append((self.now, replica, epoch))
        recent = [at for at, who, which in self.starts if (who, which) == (replica, epoch) and at > self.now - WINDOW_S]
        assert len(recent) <= MAX_RESTARTS + 1
        self.started += 1
        id = Incarnation(f"i-{self.started}")
        self.hosts[id] = Host(replica, epoch, id, self.now)

    def _report(self) -> bool:
        reports = missing_reports(self.part, self.hosts.values(), self.tries)
        for report in reports:
            aggregate = subjects.run(NODE, report.replica)
            guard = Guard(aggregate, self.sequences.get(aggregate, 0))
            self.log.take([Decision((Commit(aggregate, (report.fact,), guard, report.cause),))])
        return bool(reports)


def lived(story: list[tuple[str, ReplicaId, float]]) -> Life:
    """A life with both replicas assigned at first, after its story and when all has settled."""
    life = Life()
    for replica in REPLICAS:
        life.happen("assign", replica, 0.0)
    for what, replica, seconds in story:
        life.happen(what, replica, seconds)
    life.settle()
    return life


def assignment(replica: ReplicaId, epoch: int) -> Assigned:
    return Assigned(
        replica=replica,
        model=ModelId("m-x"),
        model_name="toy",
        revision=1,
        digest="0" * 16,
        epoch=epoch,
        members=(Member(node=NODE, rank=0, devices=(DeviceClaim(index=0, bytes=1),)),),
        spec=ModelSpec(source=SimulatedSource(), engine="simulated"),
    )


@settings(max_examples=150, deadline=None)
@given(happenings)
def test_whatever_happens_the_node_comes_to_what_the_log_wants(
    story: list[tuple[str, ReplicaId, float]],
) -> None:
    life = lived(story)

    living = {host.replica: host for host in life.hosts.values() if host.lives}
    failed = {replica for replica, record in life.part.runs.items() if record.phase == "failed"}
    assert set(life.part.assignments) - failed == set(living)
    for replica, host in living.items():
        assert ("ready", host.incarnation) == (life.part.runs[replica].phase, life.part.runs[replica].incarnation)
    assert [] == [host for host in life.hosts.values() if not host.lives]
    assert [] == missing_reports(life.part, life.hosts.values(), life.tries)


@settings(max_examples=150, deadline=None)
@given(happenings)
def test_the_log_tells_every_run_in_order(story: list[tuple[str, ReplicaId, float]]) -> None:
    life = lived(story)

    for replica in REPLICAS:
        tell = partial(facts_of, life.log.commits, subjects.run(NODE, replica))
        loading: Incarnation | None = None
        for fact in tell():
            match fact:
                case run.Loading(incarnation=incarnation):
                    loading = incarnation
                case run.Ready() | run.Degraded() | run.Stopping():
                    assert loading == fact.incarnation
                case run.Stopped() | run.Failed():
                    loading = None
                case _:
                    raise AssertionError(fact)


@settings(max_examples=50, deadline=None)
@given(happenings)
def test_every_report_has_a_cause_in_the_log(story: list[tuple[str, ReplicaId, float]]) -> None:
    life = lived(story)

    known = {commit.event_id for commit in life.log.commits}
    caused = [commit for commit in life.log.commits if commit.aggregate.kind == "run"]
    assert all(commit.causation_id in known for commit in caused)


def facts_of(commits: list[Recorded], aggregate: Aggregate) -> list[Fact]:
    return [fact for commit in commits if commit.aggregate == aggregate for fact in commit.facts]
