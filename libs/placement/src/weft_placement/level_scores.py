"""How nodes score on one way to lie that nothing tells apart but their free memory: the scorers' figures from numbers,
to the last digit as `scorers.score` has them."""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from itertools import repeat

from weft_placement.crowd_members import Order
from weft_placement.demand import Demand
from weft_placement.fit.option import part_of
from weft_placement.layout import Level, taken_of
from weft_placement.node_evaluator import Candidate
from weft_placement.node_record import NodeRecord

Key = int | tuple[tuple[int, ...], int, int]
"""All that a node's score depends on: what is free of the devices that are taken, and of the machine's memory, and how
much it has, 0 where that says nothing. A number alone: what is free of the fullest of those devices, or of all of them,
where the others say nothing."""
ALIKE: Key = ((0,), 0, 0)
"""Where nothing says anything."""
_BY_FREE = ("binpack", "spread")
SLACK = 1e-5
"""More than rounding moves a score."""


class LevelScores:
    """For the nodes of one crowd and one level. `sample`: the whole answer of a node of their class on that level."""

    def __init__(
        self, weights: tuple[tuple[str, float], ...], sample: Candidate, level: Level, replicas: int, demand: Demand
    ) -> None:
        self.level = level
        self._weights, self._fills = weights, demand.fills
        self._scores = {name: sample.scores[name] for name, _ in weights}
        if "idle" in self._scores:
            self._scores["idle"] = round(1 / (1 + replicas), 6)
        given = dict(weights)
        self._binpack, self._spread = given.get("binpack", 0.0), given.get("spread", 0.0)
        self._snug = given.get("snug", 0.0) if level.on_host else 0.0
        self._beside = sample.host.bytes if sample.host is not None and self._binpack else 0
        varying = (*_BY_FREE, "snug") if level.on_host else _BY_FREE
        self._fixed = sum(self._scores[name] * weight for name, weight in weights if name not in varying) + self._spread
        self._by_number = level.claim * (2 * self._binpack / 3 - self._spread * level.devices)

    @property
    def alike(self) -> bool:
        """Whether all of them score the same."""
        return not (self._binpack or self._spread or self._snug)

    @property
    def order(self) -> Order | None:
        """The order that has the best first, as `key_at` says it; None: it would take several."""
        if self.alike:
            return Order("id")
        if self.level.on_host or not self.level.free or (self._binpack and self._spread):
            return None
        if self._binpack:
            return Order("fills and host" if self._beside else "fills") if self._fills else None
        return None if self._fills else Order("sum", self.level.devices)

    def key_at(self, order: Order, first: int, second: int) -> Key:
        """The key of a node in that order."""
        match order.by:
            case "fills":
                return first
            case "sum":
                return -first
            case "fills and host":
                return (first,), second, 0
            case _:
                return ALIKE

    def keys(self, records: Collection[NodeRecord]) -> Iterable[Key]:
        """The key of each node. Cost: up to a search in its devices, each."""
        level, fills, least, last = self.level, self._fills, self.level.free, -self.level.devices
        if self.alike:
            return repeat(ALIKE, len(records))
        if level.on_host:
            return [(taken_of(level, each, fills), each.host, each.host_total) for each in records]
        if self._beside or not least or (level.devices > 1 and self._binpack and self._spread):
            beside = self._beside
            return [(taken_of(level, each, fills), each.host if beside else 0, 0) for each in records]
        if self._spread and level.devices > 1:
            return [sum(taken_of(level, each, fills)) for each in records]
        if fills:
            return [each.free[bisect_left(each.free, least)] for each in records]
        return [each.free[last] for each in records]

    def figure(self, key: Key) -> float:
        """About what a node scores, before anything is rounded."""
        if isinstance(key, int):
            return self._fixed + self._by_number / key
        taken, host, host_total = key
        filled, part = self._parts(taken, host, len(taken))
        about = self._fixed + self._binpack * filled - self._spread * part
        return about + self._snug * part_of(self.level.claim, host_total)

    def score(self, key: Key) -> float:
        """What a node scores."""
        if isinstance(key, int):
            (filled, part), host_total = self._parts((key,), 0, self.level.devices), 0
        else:
            taken, host, host_total = key
            filled, part = self._parts(taken, host, len(taken))
        scores = dict(self._scores)
        if "binpack" in scores:
            scores["binpack"] = round(filled, 6)
        if "spread" in scores:
            scores["spread"] = round(1 - part, 6)
        if "snug" in scores and self.level.on_host:
            scores["snug"] = round(part_of(self.level.claim, host_total), 6)
        return round(sum(scores[name] * weight for name, weight in self._weights), 6)

    def _parts(self, taken: tuple[int, ...], host: int, devices: int) -> tuple[float, float]:
        """How far the fullest device is filled, and the part of what is free on all that the claim takes."""
        claim = self.level.claim
        part = part_of(claim * devices, sum(taken))
        if self.level.on_host:
            return part, part
        memory = part_of(self._beside, host) if self._beside else 0.0
        return (memory + 2 * part_of(claim, taken[0])) / 3, part
