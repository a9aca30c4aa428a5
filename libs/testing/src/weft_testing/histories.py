"""Random histories of a small mesh, for what must hold of a fold whatever the log says."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from weft_contracts.catalogue import CATALOGUE, Entry
from weft_contracts.commit import Recorded
from weft_contracts.engines import BUILTIN
from weft_contracts.facts import machine, model, node, replica
from weft_contracts.facts.fact import Fact
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
from weft_contracts.ids import CorrelationId, EventId, InspectionId, ModelId, NodeId, ReplicaId, TokenId
from weft_contracts.subjects import Aggregate
from weft_eventlog.snapshots.shape import Shape

from weft_testing.drawn import drawn, profiles

T = TypeVar("T")
NODES = (NodeId("n-a"), NodeId("n-b"))
MODELS = (ModelId("m-x"), ModelId("m-y"))
REPLICAS = tuple(ReplicaId(f"{model}-{number}") for model in MODELS for number in (1, 2))
ENGINES = (*BUILTIN, "told")[-2:]
"""A built-in one, and one that is told of."""
_START = 1_700_000_000.0
_GIB = 1 << 30
_SPEC = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": _GIB}, max_replicas=0)

_members = st.lists(
    st.builds(
        Member,
        node=st.sampled_from(NODES),
        rank=st.integers(0, 1),
        devices=st.tuples(st.builds(DeviceClaim, index=st.integers(0, 1), bytes=st.integers(1, _GIB))),
    ),
    min_size=1,
    max_size=2,
).map(tuple)
_some_replicas = st.lists(st.sampled_from(REPLICAS), max_size=2, unique=True).map(tuple)
_receipts = st.builds(
    Receipt,
    position=st.integers(0, 99),
    decided_at=st.floats(0, 2e9),
    candidates=st.tuples(st.builds(Candidate, node=st.sampled_from(NODES), score=st.floats(0, 3))),
)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "v": st.just(1),
    "node": st.sampled_from(NODES),
    "owner": st.sampled_from(NODES),
    "model": st.sampled_from(MODELS),
    "replica": st.sampled_from(REPLICAS),
    "add": _some_replicas,
    "retire": _some_replicas,
    "members": _members,
    "receipt": _receipts,
    "spec": st.sampled_from((_SPEC, _SPEC.model_copy(update={"context_tokens": 64}))),
    "epoch": st.integers(1, 2),
    "revision": st.just(1),
    "device": st.integers(0, 1),
    "engine": st.sampled_from(ENGINES),
    "profile": profiles(st.sampled_from(ENGINES)),
    "inspection": st.sampled_from((InspectionId("i-1"), InspectionId("i-2"))),
    "incarnation": st.sampled_from(("i-1", "i-2")),
    "at": st.floats(0, 2e9),
    "expires_at": st.none() | st.floats(0, 2e9),
    "deadline_s": st.floats(0, 600),
    "silent_for": st.floats(0, 600),
}
"""Few ids, so that facts meet; the rest of a fact is drawn by its types."""
_TEXTS = {"source": st.sampled_from(("path:/m", "builtin:tiny")), "name": st.sampled_from(("one", "other"))}
_KEYS: dict[str, Sequence[str]] = {
    "node": NODES,
    "machine": NODES,
    "run": tuple(f"{node}.{replica}" for node in NODES for replica in REPLICAS),
    "inspection": tuple(f"{node}.i-{number}" for node in NODES for number in (1, 2)),
    "model": MODELS,
    "replica": REPLICAS,
    "mesh": ("mesh",),
    "token": ("t-1", "t-2"),
    "request": ("q-1", "q-2", "q-3"),
    "artifact": ("a-1", "a-2"),
    "name": ("node-1", "model-1"),
    "key": ("k-1", "k-2"),
}


def _strategy(entry: Entry) -> st.SearchStrategy[Any]:
    given = {name: drawn for name, drawn in _FIELDS.items() if name in entry.fact.model_fields}
    given |= {
        name: drawn
        for name, drawn in _TEXTS.items()
        if name in entry.fact.model_fields and entry.fact.model_fields[name].annotation is str
    }
    if entry.fact is model.SpecAccepted:
        given["revision"] = st.integers(1, 2)  # of others: what no log says before
    return drawn(entry.fact, **given)


_EVERY = {entry: _strategy(entry) for entry in CATALOGUE}


@st.composite
def _fact(draw: st.DrawFn) -> tuple[Aggregate, tuple[Fact, ...]]:
    entry: Entry = draw(st.sampled_from(CATALOGUE))
    aggregate = Aggregate(entry.kind, draw(st.sampled_from(_KEYS[entry.kind])))
    try:
        return aggregate, (draw(_EVERY[entry]),)
    except ValueError:
        return aggregate, ()  # as a fold sees a commit that it may pass over


def _given() -> list[tuple[Aggregate, tuple[Fact, ...]]]:
    """A mesh at work: both nodes healthy, each model with one replica that is placed and one that waits."""
    devices = tuple(Device(index=index, vendor="nvidia", name="H100", memory=80 * _GIB) for index in (0, 1))
    hardware = Hardware(cpus=8, memory=64 * _GIB, devices=devices)
    backends = (Backend(engine="simulated", version="1", vendors=("nvidia",)),)
    commits: list[tuple[Aggregate, tuple[Fact, ...]]] = []
    for id in NODES:
        joined = node.Joined(
            name=id, public_key="U", token=TokenId("t-1"), addresses=Addresses(host="127.0.0.1", http_port=1)
        )
        commits.append((Aggregate("node", id), (joined, node.Approved(by="t-1"), node.Healthy())))
        reported = machine.Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1")
        commits.append((Aggregate("machine", id), (reported,)))
    for number, id in enumerate(MODELS):
        member = Member(node=NODES[number], rank=0, devices=(DeviceClaim(index=0, bytes=_GIB),))
        first, second = (each for each in REPLICAS if each.startswith(id))
        receipt = Receipt(
            position=1,
            policy="default",
            policy_digest="d",
            seed=1,
            trigger="e1",
            decided_at=_START,
            refusals={},
            candidates=(),
        )
        assigned = node.Assigned(
            replica=first,
            model=id,
            model_name=id,
            revision=1,
            digest="d",
            epoch=1,
            members=(member,),
            spec=_SPEC,
        )
        placed = replica.Placed(model=id, revision=1, epoch=1, members=(member,), receipt=receipt)
        commits += [
            (Aggregate("model", id), (model.SpecAccepted(name=id, revision=1, digest="d", spec=_SPEC),)),
            (Aggregate("model", id), (model.Scaled(revision=1, add=(first, second), why="wanted"),)),
            (Aggregate("node", NODES[number]), (assigned,)),
            (Aggregate("replica", first), (placed,)),
        ]
    return commits


def histories(most: int = 30) -> st.SearchStrategy[list[Recorded]]:
    """A mesh at work, and then whatever facts of the catalogue, in whatever order, on the same few ids."""
    return st.lists(_fact(), max_size=most).map(lambda noise: _recorded([*_given(), *noise]))


def _recorded(commits: Iterable[tuple[Aggregate, tuple[Fact, ...]]]) -> list[Recorded]:
    return [
        Recorded(
            sequence=sequence,
            aggregate=aggregate,
            facts=facts,
            event_id=EventId(f"e{sequence}"),
            correlation_id=CorrelationId(f"c{sequence}"),
            causation_id=EventId(f"e{sequence - 1}") if sequence % 2 else None,
            actor="test",
            at=_START + sequence,
        )
        for sequence, (aggregate, facts) in enumerate(commits, 1)
    ]


shape_of = functools.cache(Shape)
"""Made once for a kind of memory, as in a service: to make it takes longer than all else here."""


def written(memory: object) -> list[bytes]:
    """All that a snapshot would hold of a memory, in order: equal for memories that will go on equally."""
    shape = shape_of(type(memory))
    return [
        place.name.encode() + b" " + place.adapter.dump_json(list(place.items(value)), warnings="error")
        for place, value in zip(shape._places, shape.copied(memory), strict=True)
    ]


def fill(memory: object, copied: list[Any]) -> None:
    """Fill a memory from a copy of another, by way of a snapshot's bytes."""
    shape = shape_of(type(memory))
    reader = shape.reader()
    for line in shape.slices(copied):
        reader.take(line)
    shape.fill(memory, reader.content())


def check_snapshots(
    make: Callable[[], T],
    fold: Callable[[T, Sequence[Recorded]], None],
    history: Sequence[Recorded],
    cut: int,
    on_restored: Callable[[T], None] = lambda _: None,
) -> tuple[T, T]:
    """Fold a history whole, and up to a cut, through a snapshot and on: both must hold the same, in the same order.

    Returns both, for what else must be equal. What is folded after the copy was taken must not show in it.
    """
    whole, before, after = make(), make(), make()
    fold(whole, history)
    fold(before, history[:cut])
    copied, then = shape_of(type(before)).copied(before), written(before)
    fold(before, history[cut:])
    fill(after, copied)
    assert then == written(after)
    on_restored(after)
    fold(after, history[cut:])
    assert written(whole) == written(after)
    assert written(whole) == written(before)
    if dataclasses.is_dataclass(whole) and getattr(type(whole), "__dataclass_params__").eq:  # noqa: B009
        assert whole == after
    return whole, after
