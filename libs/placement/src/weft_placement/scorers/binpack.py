"""Fill what is begun: large gaps stay for large models."""

from weft_placement.demand import Demand
from weft_placement.fit.option import Option
from weft_placement.fleet import Held, NodeView


def binpack(node: NodeView, held: Held, demand: Demand, option: Option) -> float:
    """The share of what is free on the devices that the claim takes."""
    return option.part
