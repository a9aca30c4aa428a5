"""A log that exists only in memory, with the real one's guards: for what-if, benches and tests."""

from dataclasses import dataclass, field, replace

from weft_contracts.commit import Cause, Commit, Decision, Guard, Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Healthy, Joined
from weft_contracts.facts.values import Addresses, Backend, Device, EngineName, Hardware, ModelSpec, NodeKind
from weft_contracts.ids import CorrelationId, EventId, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.subjects import Aggregate, machine, model, node

from weft_placement.fleet.index import Fleet


class GuardLost(Exception):
    """A commit was guarded by a sequence that its aggregate has passed. Nothing was taken."""


@dataclass(slots=True)
class ImaginedLog:
    """Takes commits as the real log does and folds them into a fleet at once."""

    fleet: Fleet = field(default_factory=Fleet)
    records: list[Recorded] = field(default_factory=list[Recorded])
    last: dict[Aggregate, int] = field(default_factory=dict[Aggregate, int])
    at: float = 1_700_000_000.0

    def add(self, aggregate: Aggregate, *facts: Fact, cause: Cause | None = None) -> Recorded:
        """Append one commit without a guard."""
        sequence = len(self.records) + 1
        event = EventId(f"e{sequence}")
        cause = cause or Cause(CorrelationId(f"c{sequence}"))
        recorded = Recorded(
            sequence, aggregate, facts, event, cause.correlation_id, cause.causation_id, "imagined", self.at
        )
        self.records.append(recorded)
        self.last[aggregate] = sequence
        self.fleet.apply(recorded)
        return recorded

    def take(self, decision: Decision) -> tuple[Recorded, ...]:
        """Append a decision whole. Raises GuardLost, or ValueError for a batch that the log refuses."""
        guards = [commit.guard for commit in decision.commits if commit.guard is not None]
        for guard in guards:
            self._check(guard)
        aggregates = [commit.aggregate for commit in decision.commits]
        if len(set(aggregates)) != len(aggregates):
            raise ValueError("one batch has two commits on one aggregate")
        return tuple(self._add(commit) for commit in decision.commits)

    def _add(self, commit: Commit) -> Recorded:
        return self.add(commit.aggregate, *commit.facts, cause=commit.cause)

    def _check(self, guard: Guard) -> None:
        stands = self.last.get(guard.aggregate, 0)
        if stands != guard.sequence:
            raise GuardLost(f"{guard.aggregate} stands at {stands}, not at {guard.sequence}")

    def node(
        self,
        name: str,
        *memory: int,
        vendor: str = "nvidia",
        engines: tuple[EngineName, ...] = ("llama.cpp", "simulated", "vllm"),
        labels: dict[str, str] | None = None,
        builtins: tuple[str, ...] = ("tiny",),
        kind: NodeKind = "worker",
    ) -> NodeId:
        """A healthy node with one device for each of `memory` (bytes)."""
        id = NodeId(f"n-{name}")
        devices = tuple(
            Device.model_validate({"index": index, "vendor": vendor, "name": "imagined", "memory": size})
            for index, size in enumerate(memory)
        )
        backends = tuple(
            Backend(engine=engine, version="1", vendors=tuple({d.vendor for d in devices})) for engine in engines
        )
        hardware = Hardware(cpus=8, memory=sum(memory), devices=devices)
        joined = Joined(
            name=name,
            public_key=f"U{name.upper()}",
            token=TokenId("t-1"),
            addresses=Addresses(host="127.0.0.1", http_port=1),
            labels=labels or {},
            node_kind=kind,
        )
        self.add(node(id), joined, Approved(by="t-1"))
        self.add(machine(id), Reported(hardware=hardware, backends=backends, builtins=builtins, agent_version="1"))
        self.add(node(id), Healthy())
        return id

    def model(self, name: str, spec: ModelSpec, *, replicas: int = 0, digest: str = "") -> ModelId:
        """A model's next revision with `replicas` new replicas."""
        id = ModelId(f"m-{name}")
        before = self.fleet.models.get(id)
        revision = before.revision + 1 if before else 1
        accepted = SpecAccepted(name=name, revision=revision, digest=digest or f"{name}-{revision}", spec=spec)
        cause = self.add(model(id), accepted).cause
        if replicas:
            self.scale(id, replicas, cause=cause)
        return id

    def scale(self, id: ModelId, count: int, *, avoid: tuple[str, ...] = (), cause: Cause | None = None) -> None:
        """Want so many replicas more."""
        view = self.fleet.models[id]
        numbers = range(view.next_number, view.next_number + count)
        add = tuple(replica_id(id, number) for number in numbers)
        self.add(model(id), Scaled(revision=view.revision, add=add, avoid=avoid, why="wanted"), cause=cause)

    def retire(self, *ids: ReplicaId) -> None:
        """Want these replicas no longer; all of one model."""
        view = self.fleet.models[self.fleet.replicas[ids[0]].model]
        self.add(model(view.id), Scaled(revision=view.revision, retire=ids, why="not wanted"))


def refold(log: ImaginedLog) -> Fleet:
    """The fleet folded anew from the whole log."""
    fleet = Fleet()
    for recorded in log.records:
        fleet.apply(replace(recorded))
    return fleet
