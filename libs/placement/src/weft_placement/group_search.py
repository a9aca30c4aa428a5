"""Which nodes make a group: tensor parallel inside a node, pipeline stages across, as many devices on each.

The fewest nodes that hold the replica, then the fewest devices. Cost: a first search sorts what nodes offer, for each
number of devices that it tries to take of each; after that only what changed is put in its place, and a search looks up
how many nodes hold a part (nodes of a group × devices of a node × the logarithm of the nodes) and looks at those that
do, once. Nodes are never held against one another.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import nsmallest

from weft_contracts.facts.values import Vendor
from weft_contracts.ids import NodeId

from weft_placement.demand import Demand
from weft_placement.fit.option import Miss, Option, gib
from weft_placement.fit.several_devices import cannot_split, splits_by
from weft_placement.group import Offer, Part

MOST_NODES = 64
"""In one group."""
_TRIES = 8
"""How often others are looked for where a node turns out not to hold its part."""

Fits = Callable[[NodeId, Vendor, int, int, int], Option | Miss]
"""A node's part: so many of its devices of this vendor, each with its share of so many tensor-parallel parts and
stages."""


class GroupSearch:
    """What nodes offer for groups of one demand, kept in step."""

    def __init__(self, demand: Demand, offers: Iterable[Offer] = ()) -> None:
        self._demand = demand
        self._offers = {offer.node: offer for offer in offers}
        self._sorted: dict[tuple[Vendor, int], list[tuple[int, NodeId]]] = {}
        """By vendor and number of devices, of those that were asked for: what the last of so many takes at most, and
        whose they are."""

    def put(self, node: NodeId, offer: Offer | None) -> None:
        """What a node offers from now on; None: nothing."""
        before = self._offers.pop(node, None)
        if offer is not None:
            self._offers[node] = offer
        if not self._sorted or before == offer:
            return
        if before is not None:
            for key, size in _entries(before):
                if (entries := self._sorted.get(key)) is not None:
                    del entries[bisect_left(entries, (size, node))]
        if offer is not None:
            for key, size in _entries(offer):
                if (entries := self._sorted.get(key)) is not None:
                    insort(entries, (size, node))

    def available(self) -> int:
        """The most bytes that devices of one vendor take together, over all nodes."""
        found: dict[Vendor, int] = {}
        for offer in self._offers.values():
            for vendor, most in offer.most.items():
                found[vendor] = found.get(vendor, 0) + sum(most)
        return max(found.values(), default=0)

    def find(self, avoid: Collection[str], fits: Fits) -> tuple[Part, ...] | str:
        """The nodes of a group, the one with the most devices first; or why there is none, a sentence without its
        subject."""
        demand = self._demand
        if (why := cannot_split(demand)) is not None:
            return why
        for chosen in self._by_hand(avoid) if demand.by_hand else self._even(avoid):
            found = self._tried(*chosen, fits)
            if found is not None:
                return found
        return self._why_none(avoid)

    def _even(self, avoid: Collection[str]) -> "Iterator[_Choice]":
        """As many devices of each node, the fewest nodes first."""
        demand, need = self._demand, self._demand.need
        mosts = [offer.most for offer in self._offers.values()]
        offered: set[tuple[Vendor, int]] = {(vendor, len(most)) for each in mosts for vendor, most in each.items()}
        vendors: list[Vendor] = sorted({vendor for vendor, _ in offered})
        widest = max((width for _, width in offered), default=0)
        sizes = [size for size in range(1, widest + 1) if splits_by(demand, size)]
        sizes = [size for size in sizes if demand.devices in (None, size)]
        most = min(MOST_NODES, len(self._offers), need.layers or MOST_NODES)
        for nodes in range(2, most + 1):
            if demand.stages not in (None, nodes):
                continue
            for size in sizes:
                if demand.wished is not None and size * nodes > demand.wished:
                    continue
                for vendor in vendors:
                    listed = self._in_order(vendor, size)
                    start = bisect_left(listed, (need.on_each(vendor, size, nodes), ""))
                    if len(listed) - start >= nodes:
                        yield vendor, size, nodes, [(size, node) for node in self._liked(listed[start:], size, avoid)]

    def _liked(self, listed: list[tuple[int, NodeId]], size: int, avoid: Collection[str]) -> list[NodeId]:
        """Those of them that may be taken, the ones that are liked best first; no more than a search tries."""
        sign = 1 if self._demand.fills else -1
        beside = self._demand.need.beside(size)
        keys = (
            (self._offers[node].first, sign * most, node)
            for most, node in listed
            if node not in avoid and ((host := self._offers[node].host) is None or host >= beside)
        )
        return [node for *_, node in nsmallest(MOST_NODES + _TRIES, keys)]

    def _by_hand(self, avoid: Collection[str]) -> "Iterator[_Choice]":
        """So many of the devices that were chosen, of one vendor; of the nodes with the most of them first."""
        demand, wanted = self._demand, self._demand.spans
        vendors: list[Vendor] = sorted({vendor for offer in self._offers.values() for vendor in offer.most})
        for vendor in vendors:
            each = demand.need.on_each(vendor, wanted)
            counts = [
                (sum(size >= each for size in offer.most.get(vendor, ())), offer)
                for node, offer in self._offers.items()
                if node not in avoid
            ]
            taken: list[tuple[int, NodeId]] = []
            for count, offer in sorted(counts, key=lambda pair: (-pair[0], pair[1].first, pair[1].node)):
                left = wanted - sum(there for there, _ in taken)
                if min(count, left):
                    taken.append((min(count, left), offer.node))
            if sum(there for there, _ in taken) == wanted:
                yield vendor, wanted, 1, taken

    def _tried(
        self, vendor: Vendor, tensor: int, stages: int, nodes: list[tuple[int, NodeId]], fits: Fits
    ) -> tuple[Part, ...] | None:
        """The parts, if that many of the nodes hold theirs."""
        wanted = tensor * stages
        parts: list[Part] = []
        for count, node in nodes:
            option = fits(node, vendor, count, tensor, stages)
            if isinstance(option, Option):
                parts.append(Part(node, option))
                wanted -= count
            if wanted == 0:
                return tuple(sorted(parts, key=lambda part: -len(part.option.devices)))
        return None

    def _in_order(self, vendor: Vendor, size: int) -> list[tuple[int, NodeId]]:
        """What the last of so many devices takes at most, the least first, and whose they are."""
        found = self._sorted.get((vendor, size))
        if found is None:
            offers = self._offers.items()
            sizes = [(most[size - 1], node) for node, each in offers if len(most := each.most.get(vendor, ())) >= size]
            found = self._sorted[vendor, size] = sorted(sizes)
        return found

    def _why_none(self, avoid: Collection[str]) -> str:
        demand = self._demand
        offers = [offer for node, offer in self._offers.items() if node not in avoid]
        if len(offers) < 2 and (demand.chosen is None or len(demand.chosen) > 1):
            return "it would need two nodes at least that take it; there are not two"
        if demand.by_hand:
            there = sum(len(most) for offer in offers for most in offer.most.values())
            mixed = len({vendor for offer in offers for vendor in offer.most}) > 1
            if mixed and there >= demand.spans:
                return f"the chosen devices are of several vendors: mixed vendors make no replica of {demand.spans}"
            return f"it needs {demand.spans} of the chosen devices; {there} are to be had, or have too little free"
        if demand.devices is not None and not splits_by(demand, demand.devices):
            return f"can't split it: {demand.spec.weights.heads} heads do not divide by {demand.devices}"
        needed, there = demand.need.bytes, self.available()
        told = f"it needs {gib(needed)}, devices of one vendor have {gib(there)} in all"
        if demand.devices is not None or demand.stages is not None:
            nodes = f"{demand.stages} nodes" if demand.stages is not None else "each of several nodes"
            devices = f"{demand.devices} devices" if demand.devices is not None else "as many devices"
            least = demand.devices or 1
            fit = sum(any(len(most) >= least for most in offer.most.values()) for offer in offers)
            return f"it needs {devices} on {nodes}, the fleet has {fit} with as many; {told}"
        if needed > there:
            return told
        if demand.wished is not None:
            return f"{told}, and no more than {demand.wished} of them were asked for"
        return f"{told}, which no equal number of them on each node divides so that its heads do, too"


_Choice = tuple[Vendor, int, int, list[tuple[int, NodeId]]]
"""Vendor, tensor-parallel size, stages, and how many devices of which node."""


def _entries(offer: Offer) -> Iterator[tuple[tuple[Vendor, int], int]]:
    for vendor, most in offer.most.items():
        for count, size in enumerate(most, 1):
            yield (vendor, count), size
