"""A long history of a mesh, as its services would have written it: 1,000 nodes, 500 models, replicas that come and go.

Not a script: `million.py` fills a log with it. Commits come in batches that a real log takes as they are: guards as
the services set them, and no aggregate twice in one batch.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Cause, Commit, Guard
from weft_contracts.digest import revision_digest
from weft_contracts.facts.fact import Fact
from weft_contracts.facts.machine import PressureChanged, Reported
from weft_contracts.facts.model import Scaled, SpecAccepted
from weft_contracts.facts.node import Approved, Assigned, Healthy, Joined, Unassigned, Unhealthy
from weft_contracts.facts.replica import Placed
from weft_contracts.facts.request import DeployRequested, Fulfilled
from weft_contracts.facts.run import Loading, Ready, Stopped, Stopping
from weft_contracts.facts.source import SimulatedSource
from weft_contracts.facts.values import (
    Addresses,
    Backend,
    Candidate,
    Device,
    DeviceClaim,
    Hardware,
    Member,
    ModelSpec,
    Receipt,
)
from weft_contracts.ids import (
    CorrelationId,
    EventId,
    Incarnation,
    ModelId,
    NodeId,
    ReplicaId,
    TokenId,
    replica_id,
    request_id,
)
from weft_contracts.subjects import Aggregate, machine, model, node, replica, request, run

NODES, MODELS, BATCH = 1000, 500, 500
LIVES = 4
"""Rounds that a replica lives: so many times MODELS run at once."""
GIB = 1 << 30
SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": 4 * GIB}, max_replicas=0)
DIGEST = revision_digest(SPEC)


def node_number(number: int) -> NodeId:
    return NodeId(f"n-{number % NODES:016d}")


def model_number(number: int) -> ModelId:
    return ModelId(f"m-{number:016d}")


def _receipt(position: int, first: int) -> Receipt:
    """With eight candidates, as the scheduler keeps them."""
    scores = {"binpack": 0.31, "files": 1.0, "devices": 1.0}
    candidates = tuple(
        Candidate(node=node_number(first + n), devices=(n,), score=2.31 - n / 10, scores=scores) for n in range(8)
    )
    return Receipt(
        position=position,
        policy="default",
        policy_digest="0" * 64,
        seed=position,
        trigger="0" * 32,
        decided_at=1.7e9 + position,
        refusals={"labels": 3, "room": 12},
        candidates=candidates,
    )


@dataclass(slots=True)
class LongLog:
    """Makes batches; `took` is told which sequences the log gave to the last one."""

    last: dict[Aggregate, int] = field(default_factory=dict[Aggregate, int])
    _made: Sequence[Commit] = ()
    _position: int = 0

    def took(self, sequences: Sequence[int]) -> None:
        self._position = sequences[-1]
        for each, sequence in zip(self._made, sequences, strict=True):
            self.last[each.aggregate] = sequence

    def batches(self) -> Iterator[Sequence[Commit]]:
        """For ever. Ask for the next only after `took`."""
        for commits in self._all():
            for first in range(0, len(commits), BATCH):
                self._made = commits[first : first + BATCH]
                yield self._made

    def _commit(self, aggregate: Aggregate, *facts: Fact) -> Commit:
        guard = Guard(aggregate, self.last.get(aggregate, 0))
        cause = Cause(CorrelationId(f"c-{self._position:016d}"), EventId(f"{self._position:032x}"))
        return Commit(aggregate, facts, guard, cause)

    def _all(self) -> Iterator[list[Commit]]:
        yield from self._founding()
        for number in itertools.count(1):
            yield from self._round(number)

    def _founding(self) -> Iterator[list[Commit]]:
        devices = tuple(Device(index=n, vendor="nvidia", name="H100", memory=80 * GIB, uuid="u" * 40) for n in range(8))
        hardware = Hardware(cpus=64, memory=1 << 40, disk_free=1 << 42, architecture="x86_64", devices=devices)
        backends = (Backend(engine="simulated", version="1", vendors=("nvidia",)),)
        reported = Reported(hardware=hardware, backends=backends, builtins=("tiny",), agent_version="0.1.0")
        every = [node_number(n) for n in range(NODES)]
        yield [
            self._commit(
                node(id),
                Joined(
                    name=f"worker-{id[-4:]}",
                    public_key="U" + "A" * 55,
                    token=TokenId("t-0000000000000000"),
                    addresses=Addresses(host="10.0.0.1", http_port=4711),
                    labels={"zone": id[-1], "host": id},
                ),
                Approved(by="t-0000000000000000"),
            )
            for id in every
        ]
        yield [self._commit(machine(id), reported) for id in every]
        yield [self._commit(node(id), Healthy()) for id in every]
        yield [
            self._commit(model(id), SpecAccepted(name=f"model-{id[-3:]}", revision=1, digest=DIGEST, spec=SPEC))
            for id in map(model_number, range(MODELS))
        ]

    def _round(self, number: int) -> Iterator[list[Commit]]:
        """One replica more of each model, from the request to ready; the oldest ones end."""
        models = [model_number(n) for n in range(MODELS)]
        asked = [request_id(f"{number}-{id}".encode()) for id in models]
        deploy = DeployRequested(name="model", spec=SPEC)
        yield [self._commit(request(id), deploy) for id in asked]
        done = Fulfilled(result={"model": models[0], "revision": "1"})
        yield [self._commit(request(id), done) for id in asked]
        fresh = [replica_id(id, number) for id in models]
        yield [
            self._commit(model(id), Scaled(revision=1, add=(new,), why="fewer replicas than wanted"))
            for id, new in zip(models, fresh, strict=True)
        ]
        for first in range(0, MODELS, BATCH // 2):
            half = range(first, first + BATCH // 2)
            yield [self._placed(fresh[n], models[n], _home(n, number)) for n in half] + [
                self._assigned(fresh[n], models[n], _home(n, number)) for n in half
            ]
        loading, ready = Incarnation(f"{number:032x}"), SPEC.engine
        runs = [run(_home(n, number), fresh[n]) for n in range(MODELS)]
        yield [self._commit(each, Loading(epoch=1, incarnation=loading)) for each in runs]
        answers = Ready(epoch=1, incarnation=loading, port=40_000, engine=ready, engine_version="1")
        yield [self._commit(each, answers) for each in runs]
        if number > LIVES:
            yield from self._ended(models, number - LIVES)
        some = [node_number(number * MODELS + n) for n in range(MODELS)]
        yield [self._commit(machine(id), PressureChanged(device=number % 8, bytes=number * GIB % 64)) for id in some]
        if not number % 10:
            yield [self._commit(node(id), Unhealthy(silent_for=6.5)) for id in some]
            yield [self._commit(node(id), Healthy()) for id in some]

    def _ended(self, models: Sequence[ModelId], number: int) -> Iterator[list[Commit]]:
        old = [replica_id(id, number) for id in models]
        yield [
            self._commit(model(id), Scaled(revision=1, retire=(gone,), why="more replicas than wanted"))
            for id, gone in zip(models, old, strict=True)
        ]
        homes = [_home(n, number) for n in range(MODELS)]
        yield [
            self._commit(node(home), Unassigned(replica=gone, deadline_s=30, why="retired"))
            for home, gone in zip(homes, old, strict=True)
        ]
        runs = [run(home, gone) for home, gone in zip(homes, old, strict=True)]
        yield [self._commit(each, Stopping(epoch=1, incarnation=Incarnation(f"{number:032x}"))) for each in runs]
        yield [self._commit(each, Stopped(epoch=1, why="retired")) for each in runs]

    def _placed(self, id: ReplicaId, of: ModelId, home: NodeId) -> Commit:
        receipt = _receipt(self._position, int(home[2:]))
        return self._commit(replica(id), Placed(model=of, revision=1, epoch=1, members=_members(home), receipt=receipt))

    def _assigned(self, id: ReplicaId, of: ModelId, home: NodeId) -> Commit:
        fact = Assigned(
            replica=id,
            model=of,
            model_name=f"model-{of[-3:]}",
            revision=1,
            digest=DIGEST,
            epoch=1,
            members=_members(home),
            spec=SPEC,
        )
        return self._commit(node(home), fact)


def _home(of: int, round: int) -> NodeId:
    """Where a round's replica of a model lives: no node twice in a round."""
    return node_number(of + round * 37)


def _members(home: NodeId) -> tuple[Member, ...]:
    return (Member(node=home, rank=0, devices=(DeviceClaim(index=0, bytes=4 * GIB),)),)
