"""Replicas whose room time alone may give to another: those that stop, and those that have not served yet."""

from collections import Counter
from typing import Final

from weft_contracts.ids import ModelId
from weft_fleet import Fleet, ModelView, ReplicaView

from weft_placement.eviction.endable import Endable, healthy, may_have_fewer_than_all, priority_of

STOPS: Final = "it has not stopped yet"
STARTS: Final = "it has not served yet"


def soon_free(fleet: Fleet, waiting: ReplicaView) -> tuple[list[Endable], dict[ModelId, int]]:
    """What may be free for a replica in a while, and how many of each model. One that is to serve first counts where
    its model may have fewer than all that are ready or start. Cost: a look at every replica that isn't over."""
    priority, found, spare = priority_of(fleet, waiting), list[Endable](), Counter[ModelId]()
    for model in fleet.models.values():
        if not _some_unready(model, waiting):
            continue
        views = [fleet.replicas[id] for id in model.replicas if id != waiting.id]
        there = [view for view in views if view.members and all(healthy(fleet, each.node) for each in view.members)]
        stop = [view for view in there if view.state == "stopping"]
        start = [view for view in there if view.state in ("placed", "loading")]
        most = len(model.ready) + len(start) - model.current.spec.min_replicas
        if model.id == waiting.model or most <= 0 or not may_have_fewer_than_all(model, priority):
            start = []
        found += [Endable(view, 0.0, STOPS) for view in stop] + [Endable(view, 0.0, STARTS) for view in start]
        spare[model.id] = len(stop) + min(len(start), most) if start else len(stop)
    return sorted(found, key=lambda each: each.rank), {id: number for id, number in spare.items() if number}


def anything_soon(fleet: Fleet, waiting: ReplicaView) -> bool:
    """Whether any replica but this one is neither ready nor over."""
    return any(_some_unready(model, waiting) for model in fleet.models.values())


def _some_unready(model: ModelView, waiting: ReplicaView) -> bool:
    return len(model.replicas) > len(model.ready) + (model.id == waiting.model)
