"""The search: what each node would have to be, and what the model would have to ask less of, each asked of the ranking.

Bounded: of nodes that refuse for one reason `MOST_ALIKE` are looked at, and of reasons `MOST_REASONS`; of those where
memory is what they lack, `MOST_ROOM` are asked whose end would help.
"""

from collections import defaultdict
from collections.abc import Generator
from typing import Final

from weft_contracts.facts.values import ModelSpec
from weft_contracts.ids import NodeId
from weft_fleet import NodeAssignments, NodeView

from weft_placement.device_memory import device_memory
from weft_placement.filters import FILTERS
from weft_placement.node_evaluator import Candidate, Refusal
from weft_placement.remedies.added_node import added_node
from weft_placement.remedies.added_nodes import added_nodes
from weft_placement.remedies.on_node import NodeChange, mended
from weft_placement.remedies.question import Question
from weft_placement.remedies.remedy import Remedies, Remedy, StepKind
from weft_placement.remedies.room import ended, unbudgeted
from weft_placement.remedies.smaller import smaller

MOST_ALIKE: Final = 64
MOST_REASONS: Final = 16
MOST_NODES: Final = MOST_ALIKE * MOST_REASONS
MOST_ROOM: Final = 16
MOST_STEPS: Final = 4
"""Changes on one node, but for replicas that end."""
MOST_TOLD: Final = 6
_AT_A_TIME: Final = 16
"""Nodes that are looked at before others have their turn."""

Turns = Generator[None, None, Remedies]
"""Between any two of its steps others may have their turn; what it returns is what it found."""


def remedies(question: Question) -> Remedies:
    """All of it at once."""
    turns = searched(question)
    while True:
        try:
            next(turns)
        except StopIteration as over:
            return over.value


def searched(question: Question) -> Turns:
    """The smallest sets of changes, of each sort the best, at most `MOST_TOLD`."""
    near, unseen, fits = yield from _nearest(question)
    if fits:
        return Remedies(fits=True)
    found = list[Remedy]()
    lacking_room = list[NodeChange]()
    for count, (node, held) in enumerate(near):
        if count % _AT_A_TIME == 0:
            yield
        there = _past_filters(question, NodeChange(node, held))
        if there is None:
            continue
        if there.steps and isinstance(question.answer(there.node, there.assigned), Candidate):
            found.append(Remedy(there.steps, node.name))
        else:
            lacking_room.append(there)
    yield from _with_room(question, lacking_room, found)
    passing = [(each.node, each.assigned) for each in lacking_room if not each.steps][:MOST_ALIKE]
    yield
    if question.demand.groups and question.place(passing) is not None:
        return Remedies(fits=True)
    yield from _asking_less(question, passing, found)
    if (more := (yield from added_nodes(question, passing))) is not None:
        found.append(more)
    if (new := added_node(question)) is not None:
        view, step = new
        if question.place([(view, NodeAssignments())]) is not None:
            found.append(Remedy((step,), view.name))
    return Remedies(_told(found), unseen)


def _nearest(question: Question) -> Generator[None, None, tuple[list[tuple[NodeView, NodeAssignments]], int, bool]]:
    """Some nodes of each reason, those first that came farthest, with the most free and the fewest replicas; how many
    are left out; and whether any takes it as it is."""
    by_reason: defaultdict[tuple[int, str], list[tuple[int, int, NodeId]]] = defaultdict(list)
    fleet = question.fleet
    for count, node in enumerate(fleet.nodes.values()):
        if count % _AT_A_TIME == 0:
            yield
        if node.removed or node.id in question.without:
            continue
        held = fleet.assigned(node.id)
        answer = question.answer(node, held)
        if not isinstance(answer, Refusal):
            return [], 0, True
        by_reason[-answer.stage, answer.reason].append((-answer.free, held.replicas, node.id))
    near = list[NodeId]()
    for reason in sorted(by_reason)[:MOST_REASONS]:
        near += [id for _, _, id in sorted(by_reason[reason])[:MOST_ALIKE]]
    unseen = sum(map(len, by_reason.values())) - len(near)
    return [(fleet.nodes[id], fleet.assigned(id)) for id in near], unseen, False


def _past_filters(question: Question, there: NodeChange) -> NodeChange | None:
    """The node with what makes it pass its filters; None: that takes too much, or isn't for people to change."""
    for _ in range(MOST_STEPS + 1):
        answer = question.answer(there.node, there.assigned)
        if isinstance(answer, Candidate) or answer.stage == len(FILTERS):
            return there
        change = mended(there.node, there.assigned, question.demand, answer.stage, answer.reason)
        if change is None or len(there.steps) == MOST_STEPS:
            return None
        there = NodeChange(change[0], there.assigned, (*there.steps, change[1]))
    return None


def _with_room(question: Question, lacking: list[NodeChange], found: list[Remedy]) -> Generator[None, None, None]:
    """Where memory is lacking: without the budget, without some replicas."""

    def fits(there: NodeChange) -> bool:
        return isinstance(question.answer(there.node, there.assigned), Candidate)

    helped = 0
    for there in lacking:
        yield
        free = unbudgeted(there)
        if fits(free):
            found.append(Remedy(free.steps, there.node.name))
            continue
        if helped < MOST_ROOM and (room := ended(question.fleet, there, question.demand, fits)) is not None:
            helped += 1
            found.append(Remedy(room.steps, there.node.name))


def _asking_less(
    question: Question, near: list[tuple[NodeView, NodeAssignments]], found: list[Remedy]
) -> Generator[None, None, None]:
    """On nodes that lack nothing but memory: a spec that asks for less of it."""
    if not near:
        return
    demand = question.demand

    def fits(spec: ModelSpec) -> bool:
        less = question.demand_of(spec)
        return less is not None and any(isinstance(question.answer(*each, less), Candidate) for each in near)

    shares = [
        device.free / device.total
        for node, held in near
        for device in device_memory(node, held, demand.profile, demand.recipe)
        if device.total
    ]
    for asking in smaller(question.fleet, demand, shares, fits):
        yield
        if asking is None:
            continue
        spec, steps = asking
        less = question.demand_of(spec)
        where = question.place(near, less) if less is not None else None
        if where is not None:
            found.append(Remedy(steps, where))


def _told(found: list[Remedy]) -> tuple[Remedy, ...]:
    """The best of each sort, with how many there are like it; none that is larger by more than one change than the
    smallest, but for the node that could be added, which comes last."""
    by_sort: dict[tuple[StepKind, ...], list[Remedy]] = {}
    for each in sorted(found, key=lambda remedy: remedy.order):
        by_sort.setdefault(each.kinds, []).append(each)
    if not by_sort:
        return ()
    least = min((alike[0].size for alike in by_sort.values() if not alike[0].adds), default=0)
    told = [
        Remedy(alike[0].steps, alike[0].node, len(alike) - 1)
        for alike in by_sort.values()
        if alike[0].size <= least + 1 or alike[0].adds
    ]
    return (*told[: MOST_TOLD - 1], *told[MOST_TOLD - 1 :][-1:])
