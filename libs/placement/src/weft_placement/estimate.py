"""How nodes score that nothing tells apart but their free memory: the scorers' figures from numbers, to the last digit
as `scorers.score` has them."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import repeat

from weft_contracts.ids import NodeId

from weft_placement.demand import Demand
from weft_placement.fit.option import part_of
from weft_placement.layout import Level, taken_of
from weft_placement.node_evaluator import Candidate
from weft_placement.node_index import NodeRecord

Entry = tuple[float, int, NodeId]
"""Minus the score, the devices, the node: sorts the best first."""
_Key = int | tuple[tuple[int, ...], int, int]
"""What is free of the devices that are taken, and of the machine's memory, and how much it has, 0 where that says
nothing; the first alone, of one device, where the others say nothing."""
_BY_FREE = ("binpack", "spread")
SLACK = 1e-5
"""More than rounding moves a score."""


class Estimate:
    """For the nodes of one crowd and one level. `sample`: the whole answer of a node of their class on that level."""

    def __init__(
        self,
        weights: tuple[tuple[str, float], ...],
        sample: Candidate,
        level: Level,
        replicas: int,
        demand: Demand,
        records: list[NodeRecord],
    ) -> None:
        self._weights = weights
        self._level, self._demand = level, demand
        self._scores = {name: sample.scores[name] for name, _ in weights}
        if "idle" in self._scores:
            self._scores["idle"] = round(1 / (1 + replicas), 6)
        self._beside = sample.host.bytes if sample.host is not None else 0
        self._alike = self._grouped(records)
        self._figures = self._figured()
        self._distinct = len(self._alike) == len(records)

    def figures(self, count: int) -> list[float]:
        """About what each scores, before anything is rounded; of those that score alike so many at most."""
        if self._distinct:
            return self._figures
        both = zip(self._figures, self._alike.values(), strict=True)
        return [each for figure, ids in both for each in repeat(figure, min(len(ids), count))]

    def entries(self, least: float, count: int) -> Iterator[Entry]:
        """Those of them that reach a figure, in no order; of those that score alike no more than so many."""
        size = self._level.devices
        for figure, (key, ids) in zip(self._figures, self._alike.items(), strict=True):
            if figure >= least:
                score = self._score(key)
                for id in ids if len(ids) <= count else sorted(ids)[:count]:  # mostly in order: the index has them so
                    yield -score, size, id

    def all(self) -> Iterator[Entry]:
        """All of them, in no order."""
        size = self._level.devices
        return ((-score, size, id) for key, ids in self._alike.items() for score in [self._score(key)] for id in ids)

    def _grouped(self, records: list[NodeRecord]) -> dict[_Key, list[NodeId]]:
        """The nodes by all that their scores depend on."""
        level, fills = self._level, self._demand.fills
        found: defaultdict[_Key, list[NodeId]] = defaultdict(list)
        if not any(name in _BY_FREE or (level.on_host and name == "snug") for name, _ in self._weights):
            found[(0,), 0, 0] = [each.id for each in records]
        elif level.on_host:
            for each in records:
                found[taken_of(level, each, fills), each.host, each.host_total].append(each.id)
        elif level.devices > 1 or self._beside or not level.free:
            beside = self._beside
            for each in records:
                found[taken_of(level, each, fills), each.host if beside else 0, 0].append(each.id)
        else:
            least = level.free
            for each in records:
                found[each.free[bisect_left(each.free, least)] if fills else each.most].append(each.id)
        return found

    def _figured(self) -> list[float]:
        level, weights = self._level, dict(self._weights)
        binpack, spread = weights.get("binpack", 0.0), weights.get("spread", 0.0)
        snug = weights.get("snug", 0.0) if level.on_host else 0.0
        varying = (*_BY_FREE, "snug") if level.on_host else _BY_FREE
        fixed = sum(self._scores[name] * weight for name, weight in self._weights if name not in varying) + spread
        by_free = level.claim * (2 * binpack / 3 - spread)

        def figure(taken: tuple[int, ...], host: int, host_total: int) -> float:
            filled, part = self._parts(taken, host)
            return fixed + binpack * filled - spread * part + snug * part_of(level.claim, host_total)

        return [fixed + by_free / key if isinstance(key, int) else figure(*key) for key in self._alike]

    def _score(self, key: _Key) -> float:
        taken, host, host_total = ((key,), 0, 0) if isinstance(key, int) else key
        filled, part = self._parts(taken, host)
        scores = dict(self._scores)
        if "binpack" in scores:
            scores["binpack"] = round(filled, 6)
        if "spread" in scores:
            scores["spread"] = round(1 - part, 6)
        if "snug" in scores and self._level.on_host:
            scores["snug"] = round(part_of(self._level.claim, host_total), 6)
        return round(sum(scores[name] * weight for name, weight in self._weights), 6)

    def _parts(self, taken: tuple[int, ...], host: int) -> tuple[float, float]:
        """How far the fullest device is filled, and the part of what is free on all that the claim takes."""
        claim = self._level.claim
        part = part_of(claim * len(taken), sum(taken))
        if self._level.on_host:
            return part, part
        memory = part_of(self._beside, host) if self._beside else 0.0
        return (memory + 2 * part_of(claim, taken[0])) / 3, part
