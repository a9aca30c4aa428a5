"""The fewer devices, the less they wait for one another."""

from weft_placement.demand import Demand
from weft_placement.fit.option import Option
from weft_placement.fleet import Held, NodeView


def fewer_devices(node: NodeView, held: Held, demand: Demand, option: Option) -> float:
    """1 for one device, ½ for two, ⅓ for three."""
    return 1 / len(option.devices)
