"""What the gateway tells of each model's requests while they run: in flight, waiting, tokens."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from prometheus_client import CollectorRegistry
from weft_contracts.facts.model import Deleted
from weft_contracts.ids import ModelId
from weft_contracts.subjects import model
from weft_gateway.domain.model_labels import OTHERS, ModelLabels
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.inference.model_loads import NOTHING, ModelLoad
from weft_gateway.inbound.metrics import Metrics
from weft_gateway.inbound.model_metrics import ModelMetrics

from .conftest import Front

Fronts = Any
LOCAL = ModelId("m-local")
ASKED: dict[str, Any] = {"model": "local", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


async def opened(fronts: Fronts, concurrency: int) -> Front:
    front: Front = await fronts.open(Limits(loading_wait=30, busy_wait=30))
    front.a_node()
    front.a_model("local", concurrency, of=LOCAL)
    return front


class Told:
    """The front's figures, as a scrape would find them."""

    def __init__(self, front: Front) -> None:
        self._registry = front.registry
        self._registry.register(ModelMetrics(front.loads, front.metrics.models, front.metrics.sweep))

    def __call__(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(f"weft_gateway_{name}", {"gen_ai_request_model": "local", **labels})


async def until_so(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


async def test_what_runs_and_what_waits_is_told_and_at_the_end_is_nought(fronts: Fronts) -> None:
    front = await opened(fronts, 1)
    told = Told(front)
    replica = await front.a_replica(of=LOCAL)
    first, second = await fronts.connect(front), await fronts.connect(front)
    first.post(ASKED)
    await replica.engine.has(1)
    second.post(ASKED)
    await until_so(lambda: told("model_waiting", why="busy") == 1)
    assert (2, 0) == (told("model_requests"), told("model_waiting", why="loading"))
    replica.engine.step("fine")
    replica.engine.finish_all()
    await first.answer()
    await replica.engine.has(1)
    replica.engine.finish_all()
    await second.answer()
    assert (0, 0) == (told("model_requests"), told("model_waiting", why="busy"))


async def test_tokens_are_told_while_they_come_and_never_become_fewer(fronts: Fronts) -> None:
    front = await opened(fronts, 4)
    told = Told(front)
    replica = await front.a_replica(of=LOCAL)
    wire = await fronts.connect(front)
    wire.post(ASKED)
    await replica.engine.has(1)
    for _ in range(3):
        replica.engine.step("word ")
    await until_so(lambda: told("output_tokens_total") == 3)
    replica.engine.finish_all()
    await wire.answer()
    seen = told("output_tokens_total")
    assert seen is not None
    assert seen >= 3


async def test_a_deleted_models_figures_end(fronts: Fronts) -> None:
    front = await opened(fronts, 4)
    told = Told(front)
    replica = await front.a_replica(of=LOCAL)
    wire = await fronts.connect(front)
    wire.post(ASKED)
    await replica.engine.has(1)
    replica.engine.step("word ")
    replica.engine.finish_all()
    await wire.answer()
    duration = "gen_ai_server_request_duration_seconds_count"
    of = {"gen_ai_operation_name": "chat", "gen_ai_request_model": "local", "error_type": ""}
    assert 1 == front.registry.get_sample_value(duration, of)
    front.log.given(model(LOCAL), Deleted())
    assert (None, None) == (told("output_tokens_total"), front.registry.get_sample_value(duration, of))


class Loads:
    """Models with the tokens that they have given so far."""

    def __init__(self, **tokens: int) -> None:
        self.tokens = tokens

    def now(self) -> dict[str, ModelLoad]:
        return {name: NOTHING._replace(tokens=count) for name, count in self.tokens.items()}


def test_the_others_tokens_never_become_fewer_whichever_of_them_goes_or_gets_a_place() -> None:
    loads = Loads(a=5, b=100, c=10)
    registry = CollectorRegistry()
    registry.register(ModelMetrics(cast("Any", loads), ModelLabels(1, lambda name: name in loads.tokens)))

    def told(name: str) -> float | None:
        return registry.get_sample_value("weft_gateway_output_tokens_total", {"gen_ai_request_model": name})

    assert (5, 110) == (told("a"), told(OTHERS))
    # when one beyond the bound is deleted
    loads.tokens = {"a": 5, "c": 11}
    assert (5, 111) == (told("a"), told(OTHERS))
    # when one gets the place of another
    loads.tokens = {"c": 13, "d": 1}
    assert (None, 2, 112) == (told("a"), told("c"), told(OTHERS))
    # when one is made again under its name, and counts from nothing
    loads.tokens = {"c": 4, "d": 1}
    assert (6, 112) == (told("c"), told(OTHERS))


def test_aliases_have_as_many_figures_as_models_at_most_and_those_of_the_others_are_together() -> None:
    stand = {(f"alias-{number}", f"model-{number}") for number in range(5)}
    registry = CollectorRegistry()
    metrics = Metrics(registry, models=2, stands=lambda alias, model: (alias, model) in stand)

    def told() -> dict[tuple[str, str, str], float]:
        return {
            (sample.labels["alias"], sample.labels["model"], sample.labels["error_type"]): sample.value
            for family in registry.collect()
            for sample in family.samples
            if sample.name == "weft_gateway_aliased_total"
        }

    for alias, model_name in sorted(stand):
        for outcome in "ok", "stopping":
            metrics.aliased(alias, model_name, outcome)
    own = [("alias-0", "model-0"), ("alias-1", "model-1")]
    assert {(*pair, why): 1 for pair in own for why in ("", "stopping")} | {
        (OTHERS, OTHERS, "stopping"): 3,
        (OTHERS, OTHERS, ""): 3,
    } == told()
    # when one stands for its model no more, its figures end and its place is another's
    stand.remove(own[0])
    metrics.sweep()
    metrics.aliased("alias-4", "model-4", "ok")
    assert {own[1], (OTHERS, OTHERS), ("alias-4", "model-4")} == {(alias, name) for alias, name, _ in told()}
