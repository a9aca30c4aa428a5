"""A mesh in the hand: what other services and workers would append, so that tests can tell a story."""

from weft_contracts import subjects
from weft_contracts.aliases import AliasRule, AliasTarget
from weft_contracts.backends import BackendVariant
from weft_contracts.commit import Recorded
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.inspection import Requested
from weft_contracts.facts.machine import FileFound, FileMissing, Reported
from weft_contracts.facts.model import Scaled, Sized, SpecAccepted, Unservable
from weft_contracts.facts.node import (
    Approved,
    Assigned,
    Draining,
    Healthy,
    Joined,
    Removed,
    Resumed,
    Unassigned,
    WentOffline,
)
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.request import (
    ActivationRequested,
    AliasRemovalRequested,
    AliasRequested,
    DeleteRequested,
    DeployRequested,
    Fulfilled,
    Rejected,
    RetryRequested,
    RollbackRequested,
    SchedulingRequested,
    TrialRequested,
    UnloadRequested,
)
from weft_contracts.facts.run import Failed, Loading, Ready, Stopped
from weft_contracts.facts.source import BuiltinSource, PathSource, SimulatedSource
from weft_contracts.facts.values import (
    Addresses,
    Backend,
    Device,
    DeviceClaim,
    EngineName,
    Hardware,
    Member,
    ModelSpec,
    Receipt,
    Weights,
)
from weft_contracts.ids import Incarnation, ModelId, NodeId, ReplicaId, RequestId, TokenId
from weft_contracts.signals import GatewayDemand, ModelDemand
from weft_fleet import ModelView, ReplicaView
from weft_reconciler.domain.decide import decide
from weft_reconciler.domain.decision_time import DecisionClock
from weft_reconciler.domain.demand_watch import DemandWatch
from weft_reconciler.domain.sizing import Demand
from weft_reconciler.domain.state import State
from weft_testing import HandLog

WEIGHTS = Weights(
    format="gguf", weight_bytes=1000, kv_bytes_per_token=8, layers=2, heads=2, kv_heads=2, context_tokens=2048
)
_PROCESSOR = Device(index=0, vendor="cpu", name="processor", memory=1 << 30)
ROUNDS = 40
"""More rounds than any story needs: a rule that still wants something then would go on for ever."""


def simulated(least: int = 1, most: int | None = None, **more: object) -> ModelSpec:
    """A spec without files."""
    body: dict[str, object] = {"min_replicas": least, "max_replicas": least if most is None else most}
    return ModelSpec.model_validate({"source": SimulatedSource(), "engine": "simulated"} | body | more)


def builtin(name: str = "tiny", **more: object) -> ModelSpec:
    return ModelSpec.model_validate({"source": BuiltinSource(name=name), "engine": "llama.cpp"} | more)


def path(path: str, **more: object) -> ModelSpec:
    return ModelSpec.model_validate({"source": PathSource(path=path), "engine": "llama.cpp"} | more)


class Story:
    """Appends what others would say, and lets the reconciler answer."""

    def __init__(self) -> None:
        self.state = State()
        self.log = HandLog(self.state.apply)
        self.clock = DecisionClock()
        self.watch = DemandWatch()
        self._used: dict[str, float] = {}
        self._made: dict[str, int] = {}
        self._count = 0

    # what the reconciler does

    def settle(self) -> list[Fact]:
        """Let it decide until it wants nothing more. Fails if it never does."""
        start = self.log.head
        for _ in range(ROUNDS):
            demand = Demand(self.watch.board.policy, self.watch.near, self.watch.seen)
            decisions = decide(self.state, self.clock.tick(self.log.now, seed=7), demand)
            if not decisions:
                return [fact for commit in self.log.commits[start:] for fact in commit.facts]
            self.log.take(decisions)
        raise AssertionError(f"no end after {ROUNDS} rounds: {self.log.commits[-1].facts}")

    def pass_time(self, seconds: float) -> list[Fact]:
        """Let time go by as a decider sees it: a look each five seconds."""
        facts = self.settle()
        end = self.log.now + seconds
        while self.log.now < end:
            self.log.now = min(end, self.log.now + 5)
            facts += self.settle()
        return facts

    def serve(
        self,
        seconds: float,
        *,
        running: int = 0,
        waiting: int = 0,
        loading: int = 0,
        tokens: int = 0,
        gateways: tuple[str, ...] = ("g",),
    ) -> list[Fact]:
        """Let gateways have this to do for model m, each of them and all the while; a signal and a look a second.
        `tokens`: those that each hands on in a second."""
        facts: list[Fact] = []
        end = self.log.now + seconds
        while self.log.now < end:
            for gateway in gateways:
                self.signal(gateway, running=running, waiting=waiting, loading=loading, tokens=tokens)
            facts += self.look()
            self.log.now += 1
        return facts

    def signal(
        self, gateway: str = "g", *, running: int = 0, waiting: int = 0, loading: int = 0, tokens: int = 0
    ) -> None:
        """What one gateway says of model m. `tokens`: more than the last time."""
        if running or waiting or loading:
            self._used[gateway] = self.log.now
        idle = self.log.now - self._used.setdefault(gateway, self.log.now - 1e6)
        made = self._made[gateway] = self._made.get(gateway, 0) + tokens
        told = ModelDemand(
            model=self.model().id, running=running, waiting=waiting, loading=loading, tokens=made, idle_s=idle
        )
        self.watch.board.heard(gateway, GatewayDemand(models=(told,)), self.log.now)

    def look(self) -> list[Fact]:
        """The reader looks at what was said, and it is decided."""
        self.watch.look(self.state, self.log.now)
        return self.settle()

    def sleep(self, seconds: float) -> None:
        """Let time go by while nobody decides."""
        self.log.now += seconds

    # what it should have said

    def model(self, name: str = "m") -> ModelView:
        found = self.state.fleet.model_named(name)
        assert found is not None
        return found

    def wanted(self, name: str = "m") -> list[ReplicaView]:
        replicas = (self.state.fleet.replicas[id] for id in self.model(name).replicas)
        return sorted((view for view in replicas if view.wanted), key=lambda view: view.number)

    def numbers(self, name: str = "m") -> list[int]:
        """The numbers of the wanted replicas."""
        return [view.number for view in self.wanted(name)]

    def replica(self, number: int, name: str = "m") -> ReplicaView:
        return self.state.fleet.replicas[ReplicaId(f"{self.model(name).id}-{number}")]

    def answer(self, request: Recorded) -> Fulfilled | Rejected:
        """How a request ended."""
        last = self.log.facts(request.aggregate)[-1]
        assert isinstance(last, Fulfilled | Rejected)
        return last

    def scaled(self) -> list[Scaled]:
        return [fact for fact in self.log.facts() if isinstance(fact, Scaled)]

    def sizes(self) -> list[tuple[int, int]]:
        """Every change of size, from what to what."""
        return [(fact.was, fact.replicas) for fact in self.log.facts() if isinstance(fact, Sized)]

    def unservable(self) -> list[str]:
        return [fact.reason for fact in self.log.facts() if isinstance(fact, Unservable)]

    def accepted(self) -> list[SpecAccepted]:
        return [fact for fact in self.log.facts() if isinstance(fact, SpecAccepted)]

    def questions(self, node: str) -> list[Requested]:
        return [
            fact
            for commit in self.log.commits
            for fact in commit.facts
            if isinstance(fact, Requested) and commit.aggregate.key.startswith(f"n-{node}.")
        ]

    # what the gateway says

    def deploy(self, name: str, spec: ModelSpec) -> Recorded:
        return self._request(DeployRequested(name=name, spec=spec))

    def dry_run(self, name: str, spec: ModelSpec) -> Recorded:
        return self._request(TrialRequested(name=name, spec=spec))

    def delete(self, model: str) -> Recorded:
        return self._request(DeleteRequested(model=ModelId(model)))

    def retry(self, model: str) -> Recorded:
        return self._request(RetryRequested(model=ModelId(model)))

    def rollback(self, to: int | None = None, model: str = "m") -> Recorded:
        return self._request(RollbackRequested(model=self.model(model).id, to=to))

    def unload(self, model: str, node: str, deadline_s: float = 60.0) -> Recorded:
        return self._request(UnloadRequested(model=self.model(model).id, node=self.id(node), deadline_s=deadline_s))

    def schedule(self, **told: object) -> Recorded:
        return self._request(SchedulingRequested.model_validate({"model": self.model().id} | told))

    def activate(self, model: str = "m") -> Recorded:
        return self._request(ActivationRequested(model=self.model(model).id))

    def alias(self, name: str, rule: AliasRule, targets: tuple[AliasTarget, ...]) -> Recorded:
        return self._request(AliasRequested(name=name, rule=rule, targets=targets))

    def remove_alias(self, name: str) -> Recorded:
        return self._request(AliasRemovalRequested(name=name))

    def _request(self, fact: Fact) -> Recorded:
        self._count += 1
        return self.log.given(subjects.request(RequestId(f"q-{self._count}")), fact)

    # what the registry says

    def node(
        self,
        *names: str,
        engines: tuple[EngineName, ...] = ("llama.cpp", "simulated"),
        builtins: tuple[str, ...] = ("tiny",),
        labels: dict[str, str] | None = None,
    ) -> None:
        """Nodes that joined, were approved, reported and are heard."""
        for name in names:
            self.join(name, labels or {})
            backends = tuple(Backend(engine=engine, version="1", vendors=("cpu",)) for engine in engines)
            self.report(name, *backends, builtins=builtins)
            self.say(name, Approved(by="t-1"), Healthy())

    def report(self, name: str, *backends: Backend, builtins: tuple[str, ...] = ()) -> None:
        """What a node says that it has."""
        hardware = Hardware(cpus=2, memory=1 << 30, devices=(_PROCESSOR,))
        self.log.given(
            subjects.machine(self.id(name)),
            Reported(hardware=hardware, backends=backends, builtins=builtins, agent_version="1"),
        )

    def join(self, name: str, labels: dict[str, str] | None = None) -> None:
        """A node that nobody approved yet."""
        self.say(
            name,
            Joined(
                name=name,
                public_key="U",
                token=TokenId("t-1"),
                addresses=Addresses(host="127.0.0.1", http_port=1),
                labels=labels or {},
            ),
        )

    def id(self, node: str) -> NodeId:
        return NodeId(f"n-{node}")

    def say(self, node: str, *facts: Fact) -> Recorded:
        return self.log.given(subjects.node(self.id(node)), *facts)

    def lose(self, node: str) -> Recorded:
        return self.say(node, WentOffline(silent_for=7.1))

    def find(self, node: str) -> Recorded:
        return self.say(node, Healthy())

    def drain(self, node: str, deadline_s: float = 60.0) -> Recorded:
        return self.say(node, Draining(why="admin", deadline_s=deadline_s))

    def resume(self, node: str) -> Recorded:
        return self.say(node, Resumed())

    def remove(self, node: str) -> Recorded:
        return self.say(node, Removed(why="gone"))

    # what the scheduler says

    def place(
        self, number: int, node: str, name: str = "m", backend: BackendVariant | None = None, *, beside: str = ""
    ) -> None:
        """On a node; as a group with those whose names are the letters of `beside`."""
        view = self.replica(number, name)
        model = self.model(name)
        id, epoch = self.id(node), view.epoch + 1
        claim = (DeviceClaim(index=0, bytes=1),)
        ranks = [id, *map(self.id, beside)]
        members = tuple(Member(node=each, rank=rank, devices=claim) for rank, each in enumerate(ranks))
        receipt = Receipt(
            position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0, refusals={}, candidates=()
        )
        self.log.given(
            subjects.replica(view.id),
            Placed(model=model.id, revision=view.revision, epoch=epoch, members=members, receipt=receipt),
        )
        digest, spec = model.specs[view.revision]
        assigned = Assigned(
            replica=view.id,
            model=model.id,
            model_name=name,
            revision=view.revision,
            digest=digest,
            epoch=epoch,
            members=members,
            spec=spec,
            backend=backend,
        )
        for each in (node, *beside):
            self.say(each, assigned)

    def find_no_place(self, number: int, reason: str = "no room") -> None:
        """No node has a place for a replica."""
        view = self.replica(number)
        receipt = Receipt(
            position=0, policy="p", policy_digest="d", seed=0, trigger="e", decided_at=0, refusals={}, candidates=()
        )
        self.log.given(
            subjects.replica(view.id),
            Unplaceable(model=view.model, revision=view.revision, reason=reason, receipt=receipt),
        )

    def unassign(self, number: int, node: str, name: str = "m") -> None:
        replica = self.replica(number, name).id
        self.say(node, Unassigned(replica=replica, deadline_s=30, why="retired"))

    # what a worker says

    def run(self, number: int, node: str, *facts: Fact, name: str = "m") -> Recorded:
        return self.log.given(subjects.run(self.id(node), self.replica(number, name).id), *facts)

    def ready(self, number: int, node: str, name: str = "m") -> Recorded:
        """Place a replica if it has no place, and let it become ready."""
        if self.replica(number, name).placed is None:
            self.place(number, node, name)
        epoch, start = self.replica(number, name).epoch, Incarnation(f"i{self.log.head}")
        self.run(number, node, Loading(epoch=epoch, incarnation=start), name=name)
        return self.run(
            number,
            node,
            Ready(epoch=epoch, incarnation=start, port=1, engine="simulated", engine_version="1"),
            name=name,
        )

    def fail(self, number: int, node: str, reason: str = "out of memory", permanent: bool = False) -> Recorded:
        if self.replica(number).placed is None:
            self.place(number, node)
        epoch = self.replica(number).epoch
        return self.run(number, node, Failed(epoch=epoch, reason=reason, permanent=permanent, starts=3))

    def shut_down(self, number: int, node: str) -> Recorded:
        return self.run(number, node, Stopped(epoch=self.replica(number).epoch, why="shutdown"))

    def inspect(self, node: str, found: Weights | str) -> None:
        """Answer the node's last question: the file's header, or why there is none."""
        commit = next(
            commit
            for commit in reversed(self.log.commits)
            if commit.aggregate.key.startswith(f"n-{node}.") and commit.aggregate.kind == "inspection"
        )
        asked = commit.facts[0]
        assert isinstance(asked, Requested)
        id = commit.aggregate.key.partition(".")[2]
        body = {"inspection": id, "source": asked.source}
        fact: Fact = (
            FileMissing.model_validate(body | {"reason": found})
            if isinstance(found, str)
            else FileFound.model_validate(body | {"size": 1000, "weights": found})
        )
        self.log.given(subjects.machine(self.id(node)), fact)
