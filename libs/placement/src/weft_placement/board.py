"""All nodes' verdicts on one revision, best first, kept as the fleet changes.

Made once, it asks every node; after that only those that changed. So a decision costs what changed
since the last one, and never looks at the fleet's replicas.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from weft_contracts.ids import NodeId

from weft_placement.demand import Demand
from weft_placement.fit import LADDER
from weft_placement.fit.option import gib
from weft_placement.fleet import Fleet
from weft_placement.outlook import Outlook
from weft_placement.policy import Policy
from weft_placement.verdict import Judge, Offer, Refusal, Verdict

_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class NoRoom:
    """No node takes it."""

    reason: str
    """A sentence for people, from the nearest miss."""
    refusals: Mapping[str, int]
    """How many nodes each reason turned away."""


class Board:
    """The verdicts of one revision under one policy."""

    def __init__(self, demand: Demand, policy: Policy) -> None:
        self.demand = demand
        self.changes = 0
        """Goes up whenever a verdict changes."""
        self._judge = Judge(demand, policy)
        self._verdicts: dict[NodeId, Verdict] = {}
        self._order: list[tuple[int, float, int, NodeId]] = []
        self._refusals: Counter[str] = Counter()
        self._position = -1
        self._outlook: Outlook | None = None
        self._seen = 0
        self._provisional: set[NodeId] = set()

    def sync(self, outlook: Outlook) -> None:
        """Ask the nodes again that changed since the last call, in the log or in the round's plans."""
        fleet = outlook.fleet
        if self._position < 0:
            self._ask(fleet, outlook, fleet.nodes)
        elif fleet.position > self._position:
            self._ask(fleet, outlook, tuple(self._touched(fleet)))
        self._position = fleet.position
        if outlook is not self._outlook:
            self._ask(fleet, outlook, tuple(self._provisional))
            self._provisional.clear()
            self._outlook, self._seen = outlook, 0
        if self._seen < len(outlook.log):
            changed = set(outlook.log[self._seen :])
            self._seen = len(outlook.log)
            self._provisional |= changed
            self._ask(fleet, outlook, tuple(changed))

    def offers(self, avoid: Mapping[str, str] = _NONE) -> Iterator[Offer]:
        """Places, best first, without the nodes to avoid (each with the reason why)."""
        for rank in self._order:
            verdict = self._verdicts[rank[-1]]
            if rank[-1] not in avoid and isinstance(verdict, Offer):
                yield verdict

    def refusals(self, avoid: Mapping[str, str] = _NONE) -> dict[str, int]:
        """How many nodes each reason turned away, the most frequent first."""
        counts = Counter(self._refusals)
        for node, reason in avoid.items():
            verdict = self._verdicts.get(NodeId(node))
            if verdict is not None:
                counts[reason] += 1
                if isinstance(verdict, Refusal):
                    counts[verdict.reason] -= 1
        return dict(sorted((+counts).items(), key=lambda pair: (-pair[1], pair[0])))

    def rungs_below(self, rung: int, avoid: Mapping[str, str] = _NONE) -> tuple[str, ...]:
        """Why each rung under this one was passed over."""
        best = next(self.offers(avoid), None)
        missed = best.missed if best is not None else ()
        return tuple(f"{LADDER[below][0]}: the best node {missed[below]}" for below in range(min(rung, len(missed))))

    def no_room(self, avoid: Mapping[str, str] = _NONE) -> NoRoom:
        """Why nothing is offered: the refusals, and a sentence from the node that came nearest."""
        refusals = self.refusals(avoid)
        refused = [
            verdict for node, verdict in self._verdicts.items() if isinstance(verdict, Refusal) and node not in avoid
        ]
        if refused:
            near = min(refused, key=lambda verdict: (-verdict.stage, -verdict.free, verdict.node))
            most = f" (at most {gib(near.free)})" if near.free else ""
            return NoRoom(f"no node can take it; the nearest, {near.name}, {near.reason}{most}", refusals)
        if refusals:
            return NoRoom(f"no node can take it; every node {next(iter(refusals))}", refusals)
        return NoRoom("no node can take it; there is none", refusals)

    def verdict(self, node: NodeId) -> Verdict | None:
        """What a node answered; None where it is unknown or removed."""
        return self._verdicts.get(node)

    def _touched(self, fleet: Fleet) -> Iterator[NodeId]:
        for node, position in reversed(fleet.touched.items()):
            if position <= self._position:
                return
            yield node

    def _ask(self, fleet: Fleet, outlook: Outlook, nodes: Collection[NodeId]) -> None:
        for id in nodes:
            view = fleet.nodes.get(id)
            now = None if view is None or view.removed else self._judge.ask(view, outlook.held(id))
            self._put(id, now)

    def _put(self, id: NodeId, now: Verdict | None) -> None:
        before = self._verdicts.get(id)
        if now == before:
            return
        self.changes += 1
        match before:
            case Offer():
                del self._order[bisect_left(self._order, before.rank)]
            case Refusal(reason=reason):
                self._refusals[reason] -= 1
                if not self._refusals[reason]:
                    del self._refusals[reason]
            case None:
                pass
        match now:
            case Offer():
                insort(self._order, now.rank)
                self._verdicts[id] = now
            case Refusal(reason=reason):
                self._refusals[reason] += 1
                self._verdicts[id] = now
            case None:
                self._verdicts.pop(id, None)
