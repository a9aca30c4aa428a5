"""The nodes of one crowd, and the orders in which the best of them are found without a look at all.

An order is made when it is first asked for, of all members, and kept in step after that: a node whose free memory
changed costs a search in each order that was made.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Literal, NamedTuple

from weft_contracts.ids import NodeId

from weft_placement.node_record import NodeRecord

Ordered = tuple[int, int, NodeId]
"""A node in an order, by one figure and then by another."""
_NOBODY: frozenset[NodeId] = frozenset()


class Order(NamedTuple):
    """What nodes are sorted by, the least first."""

    by: Literal["id", "host", "free", "sum", "fills", "fills and host"]
    """`id`: nothing else. `host`: what is free of the processor's memory. `free`: what each of so many devices has free
    at least, the emptiest taken. `sum`: minus what those have free together. `fills`: what one device has free, so that
    a node stands there once for each figure of its devices; and `host` after it."""
    devices: int = 0

    def of(self, record: NodeRecord) -> list[Ordered]:
        """The node's places in it."""
        match self.by:
            case "id":
                return [(0, 0, record.id)]
            case "host":
                return [(record.host, 0, record.id)]
            case "free":
                return [(record.free[-self.devices], 0, record.id)]
            case "sum":
                return [(-sum(record.free[-self.devices :]), 0, record.id)]
            case "fills":
                return [(free, 0, record.id) for free in dict.fromkeys(record.free)]
            case "fills and host":
                return [(free, record.host, record.id) for free in dict.fromkeys(record.free)]


class CrowdMembers:
    """All nodes of one crowd, kept in step by who calls `put` and `drop`."""

    def __init__(self) -> None:
        self.records: dict[NodeId, NodeRecord] = {}
        self.orders: dict[Order, list[Ordered]] = {}
        """Those that were asked for."""

    def put(self, record: NodeRecord) -> None:
        """Take up a node, or what is new of it."""
        before = self.records.get(record.id)
        self.records[record.id] = record
        if before is not None and before.free == record.free and before.host == record.host:
            return
        for order, places in self.orders.items():
            was, now = order.of(before) if before is not None else [], order.of(record)
            _remove(places, (each for each in was if each not in now))
            for each in now:
                if each not in was:
                    insort(places, each)

    def drop(self, id: NodeId) -> None:
        """The node is none of them any more."""
        record = self.records.pop(id)
        for order, places in self.orders.items():
            _remove(places, order.of(record))

    def ordered(self, order: Order) -> Sequence[Ordered]:
        """All of them in that order. Cost: the first time a sort of all, later nothing."""
        found = self.orders.get(order)
        if found is None:
            found = self.orders[order] = sorted(each for one in self.records.values() for each in order.of(one))
        return found


def _remove(places: list[Ordered], those: Iterable[Ordered]) -> None:
    for each in those:
        del places[bisect_left(places, each)]


class CrowdRest(Collection[NodeRecord]):
    """A crowd without some of its nodes, as long as nothing changes it. Cost: what is asked of it, and no more."""

    def __init__(self, members: CrowdMembers, without: Set[NodeId] = _NOBODY) -> None:
        """`without`: members, few."""
        self.members, self.left_out = members, without

    def __len__(self) -> int:
        return len(self.members.records) - len(self.left_out)

    def __iter__(self) -> Iterator[NodeRecord]:
        records, left_out = self.members.records, self.left_out
        return (each for id, each in records.items() if id not in left_out) if left_out else iter(records.values())

    def __contains__(self, record: object) -> bool:
        return isinstance(record, NodeRecord) and record.id in self.members.records and record.id not in self.left_out

    def below(self, order: Order, least: int) -> list[NodeRecord]:
        """Those whose figure in this order, in which each stands once, is less. Cost: a look at each that is found."""
        places, records = self.members.ordered(order), self.members.records
        end = bisect_left(places, (least, -1))
        return [records[id] for _, _, id in places[:end] if id not in self.left_out]

    @property
    def least_host(self) -> int:
        """What is free of the processor's memory where that is least."""
        return next(host for host, _, id in self.members.ordered(Order("host")) if id not in self.left_out)

    def last(self, order: Order) -> NodeRecord:
        """The one that comes last in this order."""
        places = self.members.ordered(order)
        return next(self.members.records[id] for _, _, id in reversed(places) if id not in self.left_out)

    def beside(self, others: Collection[NodeRecord]) -> "CrowdRest":
        """The rest without these, too."""
        return CrowdRest(self.members, {*self.left_out, *(each.id for each in others)}) if others else self
