"""A mesh in memory whose models are used or not, for tests of what ends for what."""

from collections.abc import Callable
from typing import Any

from weft_contracts.commit import Commit, Decision
from weft_contracts.facts.eviction import EvictionPolicy, ModelUse
from weft_contracts.facts.model import Scaled
from weft_contracts.facts.replica import Evicted, Unplaceable
from weft_contracts.facts.run import Loading, Ready, Stopped
from weft_contracts.facts.sizing import GatewayReading
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import Incarnation, ModelId, ReplicaId
from weft_contracts.subjects import model, run
from weft_scheduler.domain.decide import decide
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_testing.fleet_log import FleetLog

GIB = 1 << 30
RULE = EvictionPolicy(idle_s=30, settled_s=60, turn_s=300, room_s=90)


def elastic(bytes: int = GIB, **more: Any) -> ModelSpec:
    """A model that may have none, and as many as there is room for."""
    given = {"source": SimulatedSource(), "engine": "simulated", "engine_args": {"memory_bytes": bytes}}
    return ModelSpec.model_validate({**given, "min_replicas": 0, "max_replicas": 0, **more})


class Evictions:
    """A log in memory, a scheduler that folds it, and what gateways are said to do."""

    def __init__(self) -> None:
        self.log = FleetLog()
        self.state = State()
        self.folded = 0
        self.used: dict[ModelId, float | None] = {}
        """When each model was used last, by `log.now`; None: it is in use. One that isn't here was used long ago."""
        self.unknown: set[ModelId] = set()
        self.seed = 7

    def use(self, id: ModelId) -> ModelUse:
        if id in self.unknown:
            return ModelUse(model=id)
        used = self.used.get(id, self.log.now - 10_000)
        idle = 0.0 if used is None else round(self.log.now - used, 3)
        reading = GatewayReading(gateway="g", age_s=0.5, running=1 if used is None else 0, idle_s=idle)
        return ModelUse(model=id, known=True, idle_s=idle, gateways=(reading,))

    def fold(self) -> None:
        self.state.fold(self.log.commits[self.folded :])
        self.folded = len(self.log.commits)

    def decided(self) -> list[Decision]:
        self.fold()
        return decide(self.state, Rules(eviction=RULE), self.log.now, self.seed, {}, self.use)

    def settle(self, also: Callable[[], None] = lambda: None) -> list[Commit]:
        """Decide and append until nothing is left to say, twice in a row: a service looks every second. What the
        reconciler does follows at once."""
        appended: list[Commit] = []
        silent = 0
        for _ in range(200):
            decisions = self.decided()
            silent = 0 if decisions else silent + 1
            if silent == 2:
                return appended
            for decision in decisions:
                self.log.take([decision])
                appended.extend(decision.commits)
            if decisions:
                also()
        raise AssertionError("the scheduler does not come to rest")

    def serve(self) -> None:
        """All that is placed becomes ready."""
        for view in tuple(self.log.fleet.replicas.values()):
            if view.state in ("placed", "loading"):
                for member in view.members:
                    at, start = run(member.node, view.id), Incarnation("i")
                    self.log.add(at, Loading(epoch=view.epoch, incarnation=start))
                    ready = Ready(epoch=view.epoch, incarnation=start, port=1, engine="simulated", engine_version="1")
                    self.log.add(at, ready)

    def end(self) -> None:
        """All that was told to go is gone, and is retired by the reconciler."""
        for view in tuple(self.log.fleet.replicas.values()):
            if view.state == "stopping":
                for member in view.members:
                    self.log.add(run(member.node, view.id), Stopped(epoch=view.epoch, why="retired"))
            if view.evicted and view.wanted:
                self.log.add(model(view.model), Scaled(revision=view.revision, retire=(view.id,), why="was evicted"))

    def serving(self, name: str, bytes: int = GIB, replicas: int = 1, **more: Any) -> ModelId:
        """A model whose replicas serve, and have for long."""
        id = self.log.model(name, elastic(bytes, **more), replicas=replicas)
        self.settle()
        self.serve()
        self.log.now += 100
        return id

    def wanted(self, name: str, bytes: int = GIB, replicas: int = 1, **more: Any) -> ModelId:
        return self.log.model(name, elastic(bytes, **more), replicas=replicas)

    def evicted(self) -> list[ReplicaId]:
        return [
            ReplicaId(commit.aggregate.key)
            for commit in self.log.commits
            for fact in commit.facts
            if isinstance(fact, Evicted)
        ]

    def kept(self, id: ReplicaId) -> str:
        """Why nothing ends for it yet, as the log says last."""
        said = [
            fact
            for commit in self.log.commits
            for fact in commit.facts
            if isinstance(fact, Unplaceable) and commit.aggregate.key == id
        ]
        return said[-1].kept.why if said and said[-1].kept else ""
