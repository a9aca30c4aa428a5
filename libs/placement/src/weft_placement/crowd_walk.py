"""A crowd's nodes the best first, by an order that the index keeps: who asks for few looks at few."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft_contracts.ids import NodeId

from weft_placement.crowd_members import CrowdRest, Order, Ordered
from weft_placement.estimate import Entry, Estimate
from weft_placement.level_scores import Key, LevelScores


class Run(NamedTuple):
    """Nodes that score alike."""

    bound: float
    """What they score at most, and each node that comes later."""
    figure: float
    """About what each scores, before anything is rounded."""
    key: Key
    ids: list[NodeId]


class CrowdWalk:
    """Over those of a crowd that hold a replica on one level. Cost: a search in the devices of each node that is come
    by, whether or not it holds one."""

    def __init__(self, scores: LevelScores, order: Order, rest: CrowdRest) -> None:
        """`order`: that of the scores."""
        self._scores, self._order, self._rest = scores, order, rest

    def runs(self, count: int) -> Iterator[Run]:
        """The best first, by `bound`; in each so many at most, by their ids."""
        order, scores, level = self._order, self._scores, self._scores.level
        places, records, left_out = self._rest.members.ordered(order), self._rest.members.records, self._rest.left_out
        least, last, fills = level.free, -level.devices, order.by in ("fills", "fills and host")
        at, end, device, beyond = bisect_left(places, (least, -1)) if fills else 0, len(places), -1, -1.0
        while at < end:
            first, second, _ = places[at]
            ids: list[NodeId] = []
            while at < end and len(ids) < count:
                one, other, id = places[at]
                if one != first or other != second:
                    break
                at += 1
                free = records[id].free
                if free[last] >= least and id not in left_out and (not fills or free[bisect_left(free, least)] == one):
                    ids.append(id)
            if len(ids) == count:
                at = bisect_left(places, (first, second + 1), at)
            if ids:
                key = scores.key_at(order, first, second)
                figure = scores.figure(key)
                if order.by == "fills and host" and first != device:
                    device, beyond = first, self._beyond(places, first, at)
                yield Run(max(figure, beyond), figure, key, ids)

    def entries(self, run: Run) -> Iterator[Entry]:
        """The nodes of a run with their scores."""
        score, size = self._scores.score(run.key), self._scores.level.devices
        return ((-score, size, id) for id in run.ids)

    def all(self) -> Iterator[Entry]:
        """All of them, in no order. Cost: a look at each."""
        return Estimate(self._scores, self._scores.level.held_by(self._rest)).all()

    def _beyond(self, places: Sequence[Ordered], first: int, at: int) -> float:
        """What nodes score at most whose device is emptier than this: beside the least of the machine's memory."""
        following = bisect_left(places, (first + 1, -1), at)
        if following == len(places):
            return -1.0
        return self._scores.figure(self._scores.key_at(self._order, places[following][0], self._rest.least_host))
