"""Commits that are appended together: at most one an aggregate, each with its guard."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft_contracts.commit import MAX_COMMIT_BYTES, Cause, Commit, Decision, Guard
from weft_contracts.facts.fact import Fact
from weft_contracts.ids import NodeId
from weft_contracts.subjects import Aggregate, node
from weft_fleet import Fleet

_BRACKETS = 2


def size_of(fact: Fact) -> int:
    """Bytes that a fact takes in a commit, with what parts it from the next."""
    return len(fact.model_dump_json().encode()) + 1


@dataclass(slots=True)
class _NodePart:
    cause: Cause
    facts: list[Fact]
    size: int


class Batch:
    """One decision in the making.

    Facts of one node share its one commit, and so its one cause: what another cause asks of the same
    node waits for the next round.
    """

    def __init__(self, fleet: Fleet, taken: Iterable[NodeId] = ()) -> None:
        self._fleet = fleet
        self._taken = frozenset(taken)
        self._others: list[Commit] = []
        self._nodes: dict[NodeId, _NodePart] = {}
        self.replicas = 0

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """Nodes that it writes."""
        return tuple(self._nodes)

    def takes(self, cause: Cause, facts: Mapping[NodeId, Fact]) -> bool:
        """Whether all these nodes can still take a fact of this cause in this batch."""
        for id, fact in facts.items():
            if id in self._taken:
                return False
            part = self._nodes.get(id)
            if part is not None and (part.cause != cause or part.size + size_of(fact) > MAX_COMMIT_BYTES):
                return False
        return True

    def add(self, cause: Cause, facts: Mapping[NodeId, Fact], *commits: Commit) -> None:
        """One replica's facts on its nodes, and the commits that go with them."""
        self.replicas += 1
        self._others.extend(commits)
        for id, fact in facts.items():
            part = self._nodes.setdefault(id, _NodePart(cause, [], _BRACKETS))
            part.facts.append(fact)
            part.size += size_of(fact)

    def decision(self, why: str) -> Decision | None:
        """All of it; None if there is nothing."""
        commits = (*self._others, *(self._commit(id, part) for id, part in self._nodes.items()))
        return Decision(commits, why) if commits else None

    def _commit(self, id: NodeId, part: _NodePart) -> Commit:
        return guarded(node(id), self._fleet.nodes[id].sequence, tuple(part.facts), part.cause)


def guarded(aggregate: Aggregate, sequence: int, facts: tuple[Fact, ...], cause: Cause) -> Commit:
    """A commit that holds only if its aggregate still stands at `sequence`."""
    return Commit(aggregate, facts, Guard(aggregate, sequence), cause)
