"""What a gateway tells of its demand: bounded, those that need something first."""

from collections.abc import Iterable

from weft_contracts.signals import MOST_DEMANDS, GatewayDemand, ModelDemand


def told_demand(models: Iterable[ModelDemand]) -> GatewayDemand:
    """The models with anything to do, then those that rest the shortest; what there is no room for is counted."""
    in_order = sorted(models, key=lambda each: (not (each.running or each.waiting or each.loading), each.idle_s))
    return GatewayDemand(models=tuple(in_order[:MOST_DEMANDS]), left_out=max(0, len(in_order) - MOST_DEMANDS))
