"""Figures for Prometheus: what sizes are decided on."""

from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from weft_fleet import Fleet

from weft_reconciler.domain.demand_watch import DemandWatch
from weft_reconciler.inbound.model_metrics import MODELS_TOLD


class DemandMetrics(Collector):
    """Of models that may have more and fewer replicas, as of the last look."""

    def __init__(self, fleet: Callable[[], Fleet], watch: DemandWatch) -> None:
        self._fleet = fleet
        self._watch = watch

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked up when it is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """As it was seen last."""
        models = self._fleet().models
        yield GaugeMetricFamily(
            "weft_demand_gateways", "Gateways whose signals are read", value=self._watch.board.gateways
        )
        requests = GaugeMetricFamily(
            "weft_model_requests_seen", "Requests that run and wait at all gateways, by model", labels=("model",)
        )
        idle = GaugeMetricFamily(
            "weft_model_idle_seconds", "For how long nothing ran or waited, as far as that is known, by model",
            labels=("model",),
        )  # fmt: skip
        for id in self._watch.models[:MODELS_TOLD]:
            if id in models:
                seen = self._watch.seen(id)
                requests.add_metric((models[id].name,), seen.wanted)
                idle.add_metric((models[id].name,), seen.idle_s)
        yield from (requests, idle)
