"""Nodes that nothing tells apart but their scores, the best first."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat

from weft_placement.crowd_walk import CrowdWalk, Run
from weft_placement.estimate import Entry, Estimate
from weft_placement.level_scores import SLACK

AT_FIRST = 16
"""So many are put in order before the rest: a receipt keeps eight."""


@dataclass(slots=True)
class BestFirst:
    """Of several crowds, some of which are walked and some of which each node is looked at; none is empty."""

    estimates: list[Estimate] = field(default_factory=list[Estimate])
    walks: list[CrowdWalk] = field(default_factory=list[CrowdWalk])

    def entries(self) -> Iterator[Entry]:
        """All of them in order. Cost: for the first ones the runs that may be among them; past these all."""
        best = heapq.nlargest(AT_FIRST, chain.from_iterable(each.figures(AT_FIRST) for each in self.estimates))
        heapq.heapify(best)
        walked = self._walked(best)
        least = best[0] - SLACK
        found = chain.from_iterable(walk.entries(run) for run, walk in walked if run.figure >= least)
        looked_at = chain.from_iterable(each.entries(least, AT_FIRST) for each in self.estimates)
        first = heapq.nsmallest(AT_FIRST, chain(found, looked_at))
        yield from first
        if len(first) == AT_FIRST:
            rest = sorted(chain.from_iterable(each.all() for each in (*self.estimates, *self.walks)))
            yield from rest[AT_FIRST:]

    def _walked(self, best: list[float]) -> list[tuple[Run, CrowdWalk]]:
        """Every run that may be among the best figures, and others. `best`: a heap of those figures, which grows."""
        walked: list[tuple[Run, CrowdWalk]] = []
        ways = (zip(walk.runs(AT_FIRST), repeat(walk)) for walk in self.walks)
        for run, walk in heapq.merge(*ways, key=lambda each: -each[0].bound):
            if len(best) == AT_FIRST and run.bound < best[0] - SLACK:
                break
            for _ in run.ids:
                if len(best) < AT_FIRST:
                    heapq.heappush(best, run.figure)
                elif run.figure > best[0]:
                    heapq.heapreplace(best, run.figure)
            walked.append((run, walk))
        return walked
