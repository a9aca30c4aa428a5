"""What a memory's annotations say: what is copied, what comes back, and what is refused before it is lost."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.facts.fact import Fact
from weft_contracts.ids import NodeId
from weft_contracts.subjects import Aggregate
from weft_eventlog.snapshots.shape import BadContent, CannotSnapshot, Shape
from weft_eventlog.snapshots.store import Slot


@dataclass(frozen=True)
class View:
    name: str
    share: float
    labels: Mapping[int, str]
    gone: frozenset[NodeId] = frozenset()
    live: dict[NodeId, None] = field(default_factory=dict[NodeId, None])


@dataclass
class Part:
    views: dict[NodeId, View] = field(default_factory=dict[NodeId, View])
    state: Literal["calm", "busy"] = "calm"


@dataclass(slots=True)
class Memory:
    part: Part = field(default_factory=Part)
    nested: dict[tuple[str, int], dict[NodeId, int]] = field(default_factory=dict[tuple[str, int], dict[NodeId, int]])
    by_aggregate: dict[Aggregate, int] = field(default_factory=dict[Aggregate, int])
    served: set[NodeId] = field(default_factory=set[NodeId])
    last: Aggregate | None = None
    looked_at: dict[str, float] = field(default_factory=dict[str, float], compare=False)


SHAPE = Shape(Memory)
"""One for all, as a service has: to make it takes longer than to use it."""


def lines(memory: Memory) -> list[bytes]:
    return list(SHAPE.slices(SHAPE.copied(memory)))


def refilled(given: list[bytes]) -> Memory:
    memory, reader = Memory(), SHAPE.reader()
    for line in given:
        reader.take(line)
    SHAPE.fill(memory, reader.content())
    return memory


ids = st.text(min_size=1, max_size=8).map(NodeId)
aggregates = st.builds(Aggregate, kind=st.sampled_from(("node", "run")), key=ids)
views = st.builds(
    View,
    name=st.text(),
    share=st.floats(allow_nan=False, allow_infinity=False),
    labels=st.dictionaries(st.integers(), st.text()),
    gone=st.frozensets(ids),
    live=st.dictionaries(ids, st.none()),
)
memories = st.builds(
    Memory,
    part=st.builds(Part, views=st.dictionaries(ids, views), state=st.sampled_from(("calm", "busy"))),
    nested=st.dictionaries(st.tuples(st.text(), st.integers()), st.dictionaries(ids, st.integers())),
    by_aggregate=st.dictionaries(aggregates, st.integers()),
    served=st.sets(ids),
    last=st.none() | aggregates,
)


@given(memories)
def test_a_memory_comes_back_as_it_was_and_in_its_order(memory: Memory) -> None:
    back = refilled(lines(memory))
    assert memory == back
    assert [*memory.part.views] == [*back.part.views]
    assert [[*inner] for inner in memory.nested.values()] == [[*inner] for inner in back.nested.values()]


@given(memories)
def test_what_changes_in_place_after_the_copy_does_not_show_in_it(memory: Memory) -> None:
    before = lines(memory)
    copied = SHAPE.copied(memory)
    for view in memory.part.views.values():
        view.live[NodeId("late")] = None
    memory.part.views.pop(next(iter(memory.part.views), NodeId("")), None)
    for inner in memory.nested.values():
        inner[NodeId("late" * 3)] = 1
    memory.served.add(NodeId("late" * 3))
    memory.part.state = "busy" if memory.part.state == "calm" else "calm"
    assert refilled(before) == refilled(list(SHAPE.slices(copied)))


def test_who_rests_between_slices_does_not_make_them_smaller() -> None:
    views = {NodeId(f"n-{number}"): View("v", 1.0, {}) for number in range(3000)}
    count = 0
    for _ in SHAPE.slices(SHAPE.copied(Memory(part=Part(views)))):
        count += 1
        time.sleep(0.004)
    assert 300 > count


def test_a_memory_is_filled_in_place_and_what_is_no_memory_of_the_log_is_left_alone() -> None:
    memory, other = Memory(looked_at={"a": 1.0}), Memory(part=Part({NodeId("n"): View("v", 1.0, {})}))
    part, served = memory.part, memory.served
    reader = SHAPE.reader()
    for line in lines(other):
        reader.take(line)
    SHAPE.fill(memory, reader.content())
    assert (part, served) == (memory.part, memory.served)
    assert part is memory.part
    assert served is memory.served
    assert "v" == part.views[NodeId("n")].name
    assert {"a": 1.0} == memory.looked_at


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"strange []\n", "no part of this fold"),
        (b"part.views [[1]]\n", "part.views can't be read"),
        (b"part.state []\n", "part.state can't be read"),
        (b'part.state ["asleep"]\n', "part.state can't be read"),
        (b"served {not json\n", "served can't be read"),
        (b"\xff\xfe\n", "no part of this fold"),
        (b"\n", "no part of this fold"),
    ],
)
def test_a_line_that_no_such_memory_writes_is_refused(line: bytes, why: str) -> None:
    with pytest.raises(BadContent, match=why):
        SHAPE.reader().take(line)


def test_content_without_one_of_its_values_is_refused() -> None:
    with pytest.raises(BadContent, match=r"part\.state is missing"):
        refilled([line for line in lines(Memory()) if not line.startswith(b"part.state")])


def _with(hint: Any) -> type:
    return dataclass(type("Odd", (), {"__annotations__": {"odd": hint}}))


@pytest.mark.parametrize(
    "hint",
    [
        Any,
        object,
        Fact,
        dict[str, Fact],
        dict[str, tuple[Any, ...]],
        list[dict[str, int]],
        set[Any],
        dict[str, dict[Aggregate, int]],
        tuple[Mapping[tuple[str, str], int], int],
        type("Plain", (), {}),
    ],
    ids=str,
)
def test_annotations_under_which_something_else_would_come_back_are_refused(hint: Any) -> None:
    with pytest.raises(CannotSnapshot, match="odd"):
        Shape(_with(hint))


def test_a_memory_that_does_not_hold_what_it_says_is_refused_when_it_is_written() -> None:
    strange: Any = {"n": 3}
    with pytest.raises(CannotSnapshot, match="holds what its annotations don't say"):
        lines(Memory(part=Part(views=strange)))
    with pytest.raises(CannotSnapshot, match="by_aggregate holds what its annotation doesn't say"):
        lines(Memory(by_aggregate=strange))


@dataclass
class Outsider:
    slot: Slot | None = None


def test_a_memory_of_what_is_no_part_of_its_version_is_refused() -> None:
    with pytest.raises(CannotSnapshot, match=r"slot: weft_\S+ is of code that is no part of the fold's version"):
        Shape(Outsider)
