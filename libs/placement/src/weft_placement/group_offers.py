"""What nodes that nothing tells apart but their free memory offer for a group, from the index, as each would itself."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from weft_contracts.facts.values import Vendor
from weft_fleet import NodeAssignments, NodeView

from weft_placement.group import Offer
from weft_placement.group_search import GroupSearch
from weft_placement.layout import Layout
from weft_placement.node_evaluator import Evaluation, NodeEvaluator, knows_groups
from weft_placement.node_record import NodeRecord


class GroupOffers:
    """Of the nodes that passed the filters; they are made when a group is looked for."""

    def __init__(self, evaluator: NodeEvaluator) -> None:
        self._evaluator = evaluator
        self._alike: list[tuple[Vendor, int, tuple[float, ...], Collection[NodeRecord]]] = []
        """Vendor and memory of their accelerators, what sorts them before others, and the nodes."""

    def add(self, layout: Layout, node: NodeView, assigned: NodeAssignments, records: Collection[NodeRecord]) -> None:
        """Nodes of one class that told the same of the demand's files. `node`: one of them; `assigned`: what it
        holds."""
        devices = layout.accelerators
        if devices and knows_groups(node):
            liking = self._evaluator.liking(node, assigned, [each.index for each in devices])
            self._alike.append((devices[0].vendor, devices[0].memory, liking, records))

    def search(self, others: Iterable[Evaluation]) -> GroupSearch:
        """A search among them, and among those who answered themselves."""
        own = (each.offer for each in others if each.offer is not None)
        return GroupSearch(self._evaluator.demand, chain(own, self._offers()))

    def _offers(self) -> Iterator[Offer]:
        need = self._evaluator.demand.need
        for vendor, memory, liking, records in self._alike:
            for each in records:
                if need.fraction is None and each.free[0]:
                    most = each.free[::-1]
                else:
                    most = tuple(size for free in reversed(each.free) if (size := need.most_of(memory, free)))
                if most:
                    yield Offer(each.id, liking, {vendor: most}, None if each.host < 0 else each.host)
