"""The way of a request that named an alias: which of its models takes it, and which is next where that one can't."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from weft_contracts.aliases import AliasRule, AliasTarget
from weft_contracts.ids import ModelId, ReplicaId
from weft_fleet import AliasView, ModelView

from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.alias_choice import HOPEFUL, SERVING, Readiness, Target, choose
from weft_gateway.domain.routing.filters import has_room
from weft_gateway.inbound.inference.queue import BusyQueue, LoadingLine
from weft_gateway.outbound.connection_pool import ConnectionPool
from weft_gateway.projections.directory import Directory

Why = Literal["waits", "no room", "refused"]
"""Why a request looks for another model: it would have to wait; the engine itself said that it is full; the model's
wait is over or all its tries are."""


@dataclass(slots=True, eq=False)
class AliasWay:
    """One request's way through an alias."""

    alias: str
    rule: AliasRule
    targets: Sequence[AliasTarget]
    """Those that can serve the request by what it asks for."""
    bound: bool = False
    """It stays with the model that it has: it has several choices, which one model answers, or chose a replica."""
    number: str = ""
    """What makes the answer's id unique, whichever model gives it."""
    refused: set[ModelId] = field(default_factory=set[ModelId])
    """Models that had it and refused it."""
    without_room: set[ModelId] = field(default_factory=set[ModelId])
    """Models whose engines said that they are full, since the last pause."""


class AliasRouting:
    """Chooses among an alias's models by what this gateway knows of them now."""

    def __init__(self, directory: Directory, pool: ConnectionPool, queue: BusyQueue, loading: LoadingLine) -> None:
        self._directory = directory
        self._pool = pool
        self._queue = queue
        self._loading = loading

    def way(self, alias: AliasView, check: Callable[[ModelView], None]) -> AliasWay:
        """A way over the models that pass a check of what is asked for. Raises Refused: the first one's refusal where
        none does."""
        able: list[AliasTarget] = []
        first: Refused | None = None
        for target in alias.targets:
            model = self.model(target.model)
            if model is None:
                continue  # it went as the alias was set
            try:
                check(model)
            except Refused as refused:
                first = first or refused
            else:
                able.append(target)
        if not able:
            gone = Refused(
                503, f"Alias {alias.name!r} stands for no model that is there.", code="not_served",
                headers={"x-should-retry": "false"},
            )  # fmt: skip
            raise first or gone
        return AliasWay(alias.name, alias.rule, able)

    def begin(
        self, alias: AliasView, check: Callable[[ModelView], None], replica: str | None
    ) -> tuple[ModelView, AliasWay]:
        """Which model gets a request, and its way. `replica`: the one that it chose. Raises Refused."""
        way = self.way(alias, check)
        if replica is None:
            chosen = self._chosen(way, None)
            assert chosen is not None, "each target of a way is there when it begins"
            return chosen[0], way
        way.bound = True
        models = [model for each in way.targets if (model := self.model(each.model)) is not None]
        return next((model for model in models if ReplicaId(replica) in model.replicas), models[0]), way

    def next(self, way: AliasWay | None, current: ModelId, why: Why) -> ModelView | None:
        """Another model that may do better than the one that has the request; None: it stays."""
        if way is None or way.bound:
            return None
        if why == "no room":
            way.without_room.add(current)
        elif why == "refused":
            way.refused.add(current)
        found = self._chosen(way, None if why == "refused" else current)
        if found is not None and found[0].id != current and found[1] in HOPEFUL:
            return found[0]
        if why == "no room":
            way.without_room.clear()
        return None

    def model(self, id: ModelId) -> ModelView | None:
        """A model that is there."""
        model = self._directory.fleet.models.get(id)
        return None if model is None or model.deleted else model

    def beside(self, way: AliasWay | None, current: ModelId) -> tuple[ModelId, ...]:
        """Models whose room calls a request that waits for another one: all where the order says which is first."""
        if way is None or way.bound or way.rule != "order":
            return ()
        return tuple(each.model for each in way.targets if each.model != current and each.model not in way.refused)

    def _chosen(self, way: AliasWay, current: ModelId | None) -> tuple[ModelView, Readiness] | None:
        """The model that takes it by what is known now, and how it could."""
        left = [each for each in way.targets if each.model not in way.refused]
        models = {each.model: model for each in left if (model := self.model(each.model)) is not None}
        if not models:
            return None
        known: dict[ModelId, Readiness | None] = {
            id: self._readiness(model, way.without_room) for id, model in models.items()
        }
        away = self._hope if SERVING.isdisjoint(known.values()) else _not_looked_at
        targets = [
            Target(each.model, each.weight, known[each.model] or away(models[each.model]))
            for each in left
            if each.model in models
        ]
        chosen = choose(way.rule, targets, random.random(), current)
        return models[chosen.model], chosen.readiness

    def _readiness(self, model: ModelView, without_room: set[ModelId]) -> Readiness | None:
        """None for a model without a replica that is ready and reached."""
        states = [state for state in self._pool.endpoint_states(model.id) if state.ejected is None]
        if not states:
            return None
        if model.id in without_room:
            return "full"
        if not self._queue.waiting(model.id) and any(has_room(state) is None for state in states):
            return "free"
        return "busy" if self._queue.has_place(model.id) else "full"

    def _hope(self, model: ModelView) -> Readiness:
        """Of a model without such a replica. It costs a look at every node, so it is asked for where none serves."""
        if not self._directory.why_unavailable(model).temporary:
            return "away"
        return "coming" if self._loading.has_place(model.id) else "full"


def _not_looked_at(model: ModelView) -> Readiness:
    """Of a model without a replica that answers, while others have one."""
    return "away"
