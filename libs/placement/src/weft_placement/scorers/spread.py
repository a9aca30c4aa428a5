"""Keep away from others: of the same model first, and of all."""

from weft_placement.demand import Demand
from weft_placement.fit.option import Option
from weft_placement.fleet import Held, NodeView


def spread(node: NodeView, held: Held, demand: Demand, option: Option) -> float:
    """The share of what is free that stays free, halved by each replica of the same model there."""
    return (1 - option.part) / (1 + held.models.get(demand.model, 0))
