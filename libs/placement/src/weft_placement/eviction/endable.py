"""Replicas that may end for another one, and what speaks against it now."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from weft_contracts.facts.eviction import EvictionPolicy, ModelUse, UsesRead
from weft_contracts.ids import ModelId, NodeId
from weft_fleet import Fleet, ModelView, ReplicaView, is_elastic


@dataclass(frozen=True, slots=True)
class Endable:
    """A replica that serves, of a model that may have one fewer."""

    replica: ReplicaView
    idle_s: float
    """Nothing of its model ran or waited for so long, and it has been ready."""
    obstacle: str
    """Why it doesn't end now, a sentence without its subject; empty: nothing speaks against it. Time may change it."""

    @property
    def rank(self) -> tuple[float, str]:
        """Sorts what goes first: the longest idle, of equals the lower id."""
        return (-self.idle_s, self.replica.id)


def models_with_spare(
    fleet: Fleet, waiting: ReplicaView, among: Collection[ModelId] | None = None
) -> dict[ModelId, int]:
    """Of other models how many that are ready are above the minimum. None of those whose number is told, that are
    being replaced by a new revision, or of a higher priority than what waits. `among`: only of these."""
    priority = priority_of(fleet, waiting)
    models = fleet.models if among is None else {id: fleet.models[id] for id in among if id in fleet.models}
    return {
        id: len(model.ready) - model.current.spec.min_replicas
        for id, model in models.items()
        if model.ready and id != waiting.model and _may_have_fewer(model, priority)
    }


def priority_of(fleet: Fleet, replica: ReplicaView) -> int:
    """Of a replica's revision; 0 where the log lacks it."""
    model = fleet.models.get(replica.model)
    return 0 if model is None else priority_in(model, replica.revision)


def priority_in(model: ModelView, revision: int) -> int:
    """Of one revision of a model; 0 where the log lacks it."""
    return model.specs[revision][1].priority if revision in model.specs else 0


def anything_spare(fleet: Fleet) -> bool:
    """Whether any model has more ready replicas than its minimum: else nothing ends for anybody."""
    return any(
        model.ready and len(model.ready) > model.current.spec.min_replicas and is_elastic(model.current.spec)
        for model in fleet.models.values()
    )


def keeps_its_own(model: ModelView, priority: int) -> str:
    """Why no replica of a model ends for one of this priority, whatever time passes: a sentence without its subject;
    empty: one may."""
    spec = model.current.spec
    if spec.spread_all:
        return "it is wanted on all nodes that match"
    if not is_elastic(spec):
        return "its number of replicas is told, with no --max above its --min"
    if spec.priority > priority:
        return f"its priority {spec.priority} is above {priority}"
    if len(model.ready) <= spec.min_replicas:
        return f"no more of it serve than its minimum, {spec.min_replicas}"
    return "a new revision replaces it" if model.replacing else ""


def may_have_fewer_than_all(model: ModelView, priority: int) -> bool:
    """Whether its number may fall for one of this priority, if enough of it serve."""
    spec = model.current.spec
    fixed = spec.spread_all or not is_elastic(spec) or model.replacing or model.deleted
    return not fixed and spec.priority <= priority


def _may_have_fewer(model: ModelView, priority: int) -> bool:
    return not model.deleted and not keeps_its_own(model, priority)


def endable_for(
    fleet: Fleet, waiting: ReplicaView, read: UsesRead, now: float, among: Collection[ModelId] | None = None
) -> list[Endable]:
    """What might end for a replica without a place, the first to go first. `now`: seconds since the epoch. `among`:
    only of these models."""
    uses: Mapping[ModelId, ModelUse] = {each.model: each for each in read.uses}
    found: list[Endable] = []
    for id in models_with_spare(fleet, waiting, among):
        use = uses.get(id) or ModelUse(model=id)
        for replica_id in fleet.models[id].ready:
            replica = fleet.replicas[replica_id]
            if not all(healthy(fleet, member.node) for member in replica.members):
                continue  # nobody would hear that it ended
            ready_s = max(0.0, now - max((run.at for run in replica.runs.values()), default=now))
            obstacle = _obstacle(fleet, waiting, replica, read.rule, use, ready_s, now)
            found.append(Endable(replica, round(min(use.idle_s, ready_s), 3), obstacle))
    return sorted(found, key=lambda each: each.rank)


def healthy(fleet: Fleet, id: NodeId) -> bool:
    """Whether a node's agent is heard."""
    node = fleet.nodes.get(id)
    return node is not None and node.presence == "healthy"


def _obstacle(
    fleet: Fleet,
    waiting: ReplicaView,
    replica: ReplicaView,
    rule: EvictionPolicy,
    use: ModelUse,
    ready_s: float,
    now: float,
) -> str:
    """The first that holds. Of two models that would make room for each other in turns, the one that just did is
    not paid back for a while."""
    if not use.known:
        return "it isn't known when that was used last"
    if use.idle_s < rule.idle_s:
        return f"that was used less than {rule.idle_s:g} s ago"
    if ready_s < rule.settled_s:
        return f"it has been ready for less than {rule.settled_s:g} s"
    model = fleet.models.get(waiting.model)
    gave_way = model.gave_way.get(replica.model) if model is not None else None
    if gave_way is not None and now - gave_way < rule.turn_s:
        return f"what waits made room for that less than {rule.turn_s:g} s ago"
    return ""
