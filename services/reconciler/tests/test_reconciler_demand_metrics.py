"""The figures that are shown of what sizes are decided on."""

from prometheus_client import CollectorRegistry
from weft_contracts.signals import GatewayDemand, ModelDemand
from weft_reconciler.inbound.demand_metrics import DemandMetrics

from .elastic import an_elastic_model


def test_metrics_tell_what_sizes_are_decided_on() -> None:
    story = an_elastic_model(1, 4)
    story.serve(3, running=1, waiting=2, gateways=("g", "h"))
    registry = CollectorRegistry()
    registry.register(DemandMetrics(lambda: story.state.fleet, story.watch))
    assert 2 == registry.get_sample_value("weft_demand_gateways")
    assert 6 == registry.get_sample_value("weft_model_requests_seen", {"model": "m"})
    assert 0 == registry.get_sample_value("weft_model_idle_seconds", {"model": "m"})

    used = ModelDemand(model=story.model().id, idle_s=30.0)
    for second in range(60):
        for gateway in "gh":
            idle = used.model_copy(update={"idle_s": 30.0 + second})
            story.watch.board.heard(gateway, GatewayDemand(models=(idle,)), story.log.now)
        story.look()
        story.log.now += 1
    assert 50 < (registry.get_sample_value("weft_model_idle_seconds", {"model": "m"}) or 0) < 61
