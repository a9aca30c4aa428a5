"""How nodes score that nothing tells apart but their free memory, each looked at."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import repeat

from weft_contracts.ids import NodeId

from weft_placement.level_scores import Key, LevelScores
from weft_placement.node_record import NodeRecord

Entry = tuple[float, int, NodeId]
"""Minus the score, the devices, the node: sorts the best first."""


class Estimate:
    """For the nodes of one crowd and one level. Cost: a key for each, a figure for each key."""

    def __init__(self, scores: LevelScores, records: Collection[NodeRecord]) -> None:
        self._scores = scores
        self._alike: defaultdict[Key, list[NodeId]] = defaultdict(list)
        """The nodes by all that their scores depend on."""
        for key, each in zip(scores.keys(records), records, strict=True):
            self._alike[key].append(each.id)
        self._figures = [scores.figure(key) for key in self._alike]
        self._distinct = len(self._alike) == len(records)

    def figures(self, count: int) -> list[float]:
        """About what each scores, before anything is rounded; of those that score alike so many at most."""
        if self._distinct:
            return self._figures
        both = zip(self._figures, self._alike.values(), strict=True)
        return [each for figure, ids in both for each in repeat(figure, min(len(ids), count))]

    def entries(self, least: float, count: int) -> Iterator[Entry]:
        """Those of them that reach a figure, in no order; of those that score alike no more than so many."""
        size = self._scores.level.devices
        for figure, (key, ids) in zip(self._figures, self._alike.items(), strict=True):
            if figure >= least:
                score = self._scores.score(key)
                for id in ids if len(ids) <= count else sorted(ids)[:count]:  # mostly in order: the index has them so
                    yield -score, size, id

    def all(self) -> Iterator[Entry]:
        """All of them, in no order."""
        size = self._scores.level.devices
        scored = ((self._scores.score(key), ids) for key, ids in self._alike.items())
        return ((-score, size, id) for score, ids in scored for id in ids)
