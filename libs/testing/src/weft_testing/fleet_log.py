"""A log in the hand with a fleet that follows it: for benches, and for tests of what decides on a fleet."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from weft_contracts.commit import Cause, Recorded
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import Reported
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Healthy, Joined
from weft_contracts.facts.values import Addresses, Backend, Device, EngineName, Hardware, ModelSpec, NodeKind
from weft_contracts.ids import CorrelationId, ModelId, NodeId, ReplicaId, TokenId, replica_id
from weft_contracts.subjects import Aggregate, machine, model, node
from weft_fleet import Fleet

from weft_testing.hand_log import HandLog


class FleetLog(HandLog):
    """A log in the hand whose commits are folded into a fleet at once, with words for nodes and models."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet()
        self.listen(self.fleet.apply)

    def add(self, aggregate: Aggregate, *facts: Fact, cause: Cause | None = None) -> Recorded:
        """Append one commit without a guard; without a cause it has one of its own."""
        return self.given(aggregate, *facts, cause=cause or Cause(CorrelationId(f"c{self.head + 1}")))

    def node(
        self,
        name: str,
        *memory: int,
        vendor: str = "nvidia",
        engines: tuple[EngineName, ...] = tuple(sorted(BUILTIN)),
        labels: dict[str, str] | None = None,
        builtins: tuple[str, ...] = ("tiny",),
        kind: NodeKind = "worker",
        host: str = "127.0.0.1",
        reads: Mapping[str, int] | None = None,
    ) -> NodeId:
        """A healthy node with one device for each of `memory` (bytes). `reads`: the facts that its worker reads in
        versions above 1; None: none."""
        id = NodeId(f"n-{name}")
        devices = tuple(
            Device.model_validate({"index": index, "vendor": vendor, "name": "in memory", "memory": size})
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
            addresses=Addresses(host=host, http_port=1),
            labels=labels or {},
            node_kind=kind,
        )
        self.add(node(id), joined, Approved(by="t-1"))
        reported = Reported(
            hardware=hardware, backends=backends, builtins=builtins, agent_version="1", reads=dict(reads or {})
        )
        self.add(machine(id), reported)
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


def refold(commits: Iterable[Recorded]) -> Fleet:
    """The fleet folded anew from a whole log."""
    fleet = Fleet()
    for recorded in commits:
        fleet.apply(replace(recorded))
    return fleet
