"""Two looks at a mesh's load, and what lies between them: tokens a second."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft_api import MeshLoad


@dataclass(frozen=True, slots=True)
class Look:
    """The load as one gateway said it."""

    load: "MeshLoad"
    speeds: dict[str, float]
    """Tokens a second by model, of those that are shown; empty after the first look, or after one at another gateway:
    each counts since its own start."""
    speed: float | None = None
    """Of all models."""

    def as_json(self) -> dict[str, Any]:
        """The gateway's answer with `tokens_s` in `totals` and in each model; null where it is not known yet."""
        models = [{**model, "tokens_s": self.speeds.get(model["name"])} for model in self.load["models"]]
        return {**self.load, "models": models, "totals": {**self.load["totals"], "tokens_s": self.speed}}


def look(load: "MeshLoad", before: Look | None) -> Look:
    """What was said now, with the speeds since the look before."""
    if before is None or before.load["gateway"]["instance"] != load["gateway"]["instance"]:
        return Look(load, {})
    seconds = load["at_s"] - before.load["at_s"]
    if seconds <= 0:
        return Look(load, before.speeds, before.speed)
    then = {model["name"]: model["tokens"] for model in before.load["models"]}
    speeds = {
        model["name"]: _speed(model["tokens"] - then[model["name"]], seconds)
        for model in load["models"]
        if model["name"] in then
    }
    return Look(load, speeds, _speed(load["totals"]["tokens"] - before.load["totals"]["tokens"], seconds))


def _speed(tokens: int, seconds: float) -> float:
    """A model that was deleted took its tokens along: that is no speed below zero."""
    return round(max(0, tokens) / seconds, 1)
