"""What `/metrics` tells of each model's requests at this moment. Read off the requests themselves at each scrape."""

from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from weft_gateway.domain.model_labels import OTHERS, ModelLabels
from weft_gateway.inbound.inference.model_loads import ModelLoads

_MODEL = ("gen_ai_request_model",)


class ModelMetrics(Collector):
    """A model is told of as long as its label stands: what it has none of is 0, and not absent."""

    def __init__(self, loads: ModelLoads, labels: ModelLabels, sweep: Callable[[], None] | None = None) -> None:
        """`sweep` ends the figures of what is gone, before each look; None: those of the labels alone."""
        self._loads = loads
        self._labels = labels
        self._sweep = sweep or labels.sweep
        self._last: dict[str, int] = {}
        """Tokens of each model at the last look."""
        self._out = Counter[str]()
        """Tokens by label: a model that ends, or that gets a label of its own, takes none away from the others."""

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked up when it is registered."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """As it stands."""
        self._sweep()
        found = self._loads.now()
        running, busy, loading = Counter[str](), Counter[str](), Counter[str]()
        for model, load in found.items():
            label = self._labels.label(model)
            running[label] += load.running
            busy[label] += load.busy
            loading[label] += load.loading
            last = self._last.get(model, 0)
            self._out[label] += load.tokens - (last if last <= load.tokens else 0)
        self._last = {model: load.tokens for model, load in found.items()}
        for gone in self._out.keys() - {*self._labels, OTHERS}:
            del self._out[gone]
        names = sorted({*running, *self._labels, *self._out})
        now = GaugeMetricFamily("weft_gateway_model_requests", "Choices that run or wait, by model", labels=_MODEL)
        waiting = GaugeMetricFamily(
            "weft_gateway_model_waiting",
            "Requests that wait, by model and for what: a busy replica (busy), one that loads (loading)",
            labels=(*_MODEL, "why"),
        )
        out = CounterMetricFamily(
            "weft_gateway_output_tokens",
            "Output tokens handed on, those of running requests among them",
            labels=_MODEL,
        )
        for name in names:
            now.add_metric((name,), running[name])
            waiting.add_metric((name, "busy"), busy[name])
            waiting.add_metric((name, "loading"), loading[name])
            out.add_metric((name,), self._out[name])
        yield from (now, waiting, out)
