"""Of which models the last use is asked, where one of their replicas might end for another."""

from collections.abc import Callable, Collection

from weft_contracts.facts.eviction import MOST_USES, EvictionPolicy, ModelUse, UsesRead
from weft_contracts.ids import ModelId
from weft_fleet import Fleet, ReplicaView

from weft_placement.eviction.endable import models_with_spare


def uses_of(
    fleet: Fleet,
    waiting: ReplicaView,
    rule: EvictionPolicy,
    use: Callable[[ModelId], ModelUse],
    among: Collection[ModelId] | None = None,
) -> UsesRead:
    """What is known of the models that may have one replica fewer, the longest idle first; of at most `MOST_USES`.
    What isn't told there counts as unknown. `among`: only of these."""
    found = [use(id) for id in models_with_spare(fleet, waiting, among)]
    found.sort(key=lambda each: (not each.known, -each.idle_s, each.model))
    return UsesRead(rule=rule, uses=tuple(found[:MOST_USES]))
