"""The variables of one rendering, and what it has left."""

from typing import Any

from jinja2.runtime import Context

from weft_prompts.templates.bounds import Bounds, Meter


class MeteredContext(Context):
    """Every rendering has one of its own, with a meter of its own."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.meter = Meter(Bounds())
