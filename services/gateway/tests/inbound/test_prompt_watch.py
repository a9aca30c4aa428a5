"""What models lack of a gateway's own prompts, looked at in turn."""

from typing import Any

from prometheus_client import CollectorRegistry
from weft_contracts.ids import ModelId
from weft_fleet import ModelView
from weft_gateway.domain.prompts.lacking import KINDS, Lack
from weft_gateway.inbound.inference.prompt_watch import PromptWatch
from weft_gateway.inbound.metrics import Metrics

AWAY = Lack("away", "tokenizer.json of b can't be had: node one can't be reached")


class Model:
    """As much of one as a look needs."""

    def __init__(self, name: str) -> None:
        self.id = ModelId(name)


async def test_what_somebody_should_know_is_shown_all_is_counted_and_what_is_had_again_is_gone() -> None:
    lacks: dict[str, Lack | None] = {"a": None, "b": AWAY, "c": Lack("no_card", "none"), "d": Lack("waiting", "soon")}

    def look(model: ModelView) -> Lack | None:
        return lacks[model.id]

    models: Any = [Model(name) for name in lacks]
    watch = PromptWatch(look, lambda: models)
    registry = CollectorRegistry()
    Metrics(registry).watch_each("models_without_prompts", "Models", "why", KINDS, watch.count)

    def counted() -> dict[str, float]:
        found = {kind: registry.get_sample_value("models_without_prompts", {"why": kind}) for kind in KINDS}
        assert None not in found.values()
        return {kind: count for kind, count in found.items() if count}

    await watch.look()
    assert {"b": AWAY.why} == watch.shown
    assert {"away": 1, "no_card": 1, "waiting": 1} == counted()
    # when it can be had again
    lacks["b"] = None
    await watch.look()
    assert {} == watch.shown
    assert {"no_card": 1, "waiting": 1} == counted()
