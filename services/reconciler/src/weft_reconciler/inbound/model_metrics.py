"""What `/metrics` of the reconciler tells of models: how many replicas each should have, and how many answer."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from weft_contracts.ids import ReplicaId
from weft_contracts.states import ReplicaState
from weft_fleet import Fleet, ModelView

MODELS_TOLD = 5000
"""Models that are told one by one; of more, the first that were deployed."""


class ModelMetrics(Collector):
    """Looks at the fleet at each scrape (`bench/metrics.py`)."""

    def __init__(self, fleet: Callable[[], Fleet]) -> None:
        self._fleet = fleet

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked up when it is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """As it stands."""
        fleet = self._fleet()
        there = [model for model in fleet.models.values() if not model.deleted]
        yield GaugeMetricFamily("weft_models", "Models that are deployed", value=len(there))
        wanted = GaugeMetricFamily(
            "weft_model_replicas_wanted", "Replicas that there should be, by model", labels=("model",)
        )
        ready = GaugeMetricFamily("weft_model_replicas_ready", "Those of them that answer, by model", labels=("model",))
        for model in there[:MODELS_TOLD]:
            its = _wanted(fleet, model)
            wanted.add_metric((model.name,), len(its))
            ready.add_metric((model.name,), sum(id in model.ready for id in its))
        yield from (wanted, ready)
        states = Counter(view.state for id, view in fleet.replicas.items() if id not in fleet.closed)
        replicas = GaugeMetricFamily(
            "weft_replicas", "Replicas that are wanted or still hold something, by state", labels=("state",)
        )
        for state in get_args(ReplicaState):
            replicas.add_metric((state,), states[state])
        yield replicas


def _wanted(fleet: Fleet, model: ModelView) -> list[ReplicaId]:
    views = (fleet.replicas[id] for id in model.replicas if id in fleet.replicas)
    return [view.id for view in views if view.wanted and not view.evicted]
