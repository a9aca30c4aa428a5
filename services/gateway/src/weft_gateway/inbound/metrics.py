"""What the gateway counts, under GenAI names where the OpenTelemetry convention has one.

Source of the names: the semantic conventions for generative AI metrics, written the Prometheus way.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from weft_gateway.domain.model_labels import AliasLabels, ModelLabels
from weft_gateway.inbound.inference.in_flight_choice import InFlightChoice
from weft_gateway.inbound.inference.prompt_step import Made

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_PER_TOKEN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
T = TypeVar("T", bound=str)
MODELS = 100
_LABELS = ("gen_ai_operation_name", "gen_ai_request_model")


class Metrics:
    """Per request a few microseconds, per token nothing."""

    def __init__(
        self,
        registry: CollectorRegistry = REGISTRY,
        *,
        models: int = MODELS,
        exists: Callable[[str], bool] = lambda _: True,
        stands: Callable[[str, str], bool] = lambda _, __: True,
    ) -> None:
        """`models`: so many at most have figures of their own, and as many pairs of an alias and a model. `exists`:
        whether a model of a name is still there; `stands`: whether an alias still stands for a model."""
        self._registry = registry
        self.models = ModelLabels(models, exists, self._forget)
        self._aliases = AliasLabels(models, lambda pair: stands(*pair), self._forget_alias)
        self._duration = Histogram(
            "gen_ai_server_request_duration_seconds",
            "From a request's acceptance to its end",
            (*_LABELS, "error_type"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._first = Histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "From a request's acceptance to its first token",
            _LABELS,
            buckets=_SECONDS,
            registry=registry,
        )
        self._per_token = Histogram(
            "gen_ai_server_time_per_output_token_seconds",
            "Between output tokens, after the first",
            _LABELS,
            buckets=_PER_TOKEN,
            registry=registry,
        )
        self._usage = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a request",
            (*_LABELS, "gen_ai_token_type"),
            buckets=_TOKENS,
            registry=registry,
        )
        self._refused = Counter(
            "weft_gateway_refused", "Requests answered with an error status", ("status", "route"), registry=registry
        )
        self._elsewhere = Counter(
            "weft_gateway_went_elsewhere", "Requests whose replica failed them", ("how",), registry=registry
        )
        for how in ("resumed", "started anew", "to another model"):
            self._elsewhere.labels(how)  # from the start: the first of them would else be no increase
        self._aliased = Counter(
            "weft_gateway_aliased",
            "Requests that named an alias, by the model that they ended with",
            ("alias", "model", "error_type"),
            registry=registry,
        )
        self._prompts = Counter(
            "weft_gateway_prompts",
            "Prompts by who made their token ids, and those that this gateway refused since they don't fit",
            ("made",),
            registry=registry,
        )
        self._shed = Counter("weft_gateway_shed", "Clients dropped because they read too slowly", registry=registry)

    def watch(self, name: str, what: str, read: Callable[[], float]) -> None:
        """A gauge read at each scrape."""
        Gauge(name, what, registry=self._registry).set_function(read)

    def watch_each(self, name: str, what: str, label: str, values: Iterable[T], read: Callable[[T], float]) -> None:
        """A gauge with a label of these values, each read at each scrape."""
        gauge = Gauge(name, what, (label,), registry=self._registry)
        for value in values:
            gauge.labels(value).set_function(partial(read, value))

    def request_ended(self, choice: InFlightChoice, outcome: str, now: float) -> None:
        """See request_dispatcher.RequestMetrics."""
        operation = "chat" if choice.request.chat else "text_completion"
        labels = (operation, self.models.label(choice.request.model))
        if choice.way is not None:
            self.aliased(choice.way.alias, choice.request.model, outcome)
        self._duration.labels(*labels, "" if outcome == "ok" else outcome).observe(now - choice.started_at)
        if not choice.first_at:
            return
        self._first.labels(*labels).observe(choice.first_at - choice.started_at)
        if outcome != "ok":
            return
        usage = choice.usage
        self._usage.labels(*labels, "input").observe(usage.prompt)
        self._usage.labels(*labels, "output").observe(usage.output)
        if usage.output > 1 and choice.request.stream:
            self._per_token.labels(*labels).observe((now - choice.first_at) / (usage.output - 1))

    def unary_ended(self, operation: str, model: str, outcome: str, seconds: float, tokens: int) -> None:
        """A request with one answer is over. `operation`: embeddings or rerank."""
        model = self.models.label(model)
        self._duration.labels(operation, model, "" if outcome == "ok" else outcome).observe(seconds)
        if outcome == "ok":
            self._usage.labels(operation, model, "input").observe(tokens)

    def aliased(self, alias: str, model: str, outcome: str) -> None:
        """A request that named an alias is over; all other figures are its model's."""
        self._aliased.labels(*self._aliases.labels(alias, model), "" if outcome == "ok" else outcome).inc()

    def refused(self, status: int, route: str) -> None:
        """A client was answered an error. `route`: a hot route's name, or the path's `error_metrics.route_label`."""
        self._refused.labels(str(status), route).inc()

    def went_elsewhere(self, how: str) -> None:
        """See request_dispatcher.RequestMetrics."""
        self._elsewhere.labels(how).inc()

    def prompt_made(self, by: Made) -> None:
        """Who made a prompt; see prompt_step."""
        self._prompts.labels(by).inc()

    def sweep(self) -> None:
        """End the figures of models and aliases that are gone; for every scrape."""
        self.models.sweep()
        self._aliases.sweep()

    def _forget(self, model: str) -> None:
        for each in (self._duration, self._first, self._per_token, self._usage):
            each.remove_by_labels({"gen_ai_request_model": model})

    def _forget_alias(self, pair: tuple[str, str]) -> None:
        alias, model = pair
        self._aliased.remove_by_labels({"alias": alias, "model": model})

    def shed(self) -> None:
        """A slow client was dropped."""
        self._shed.inc()
