"""What a model's header says of its cache and its activations, where a claim counts closer than by the two sums."""

from typing import Annotated

from pydantic import Field

from weft_contracts.facts.fact import Count, Value

MOST_TENSOR_TYPES = 16
"""Of one model."""
MOST_FAULT = 300
"""Characters."""


class Cache(Value, frozen=True):
    """Bytes of one token's cache, with values of 16 bits, of all layers of one sort."""

    keys: Count = 0
    values: Count = 0
    """0 where they are read from the keys, as in latent attention."""

    @property
    def bytes(self) -> int:
        """Both."""
        return self.keys + self.values


class LayerCounts(Value, frozen=True):
    """How many layers there are of each sort."""

    whole: Count = 0
    """That keep every token."""
    windowed: Count = 0
    """That keep the last ones."""
    state: Count = 0
    """That carry a state."""


class ModelShape(Value, frozen=True):
    """Beside what `Weights` has always told, whose numbers stay what they were."""

    whole: Cache = Cache()
    """Of the layers that keep every token."""
    windowed: Cache = Cache()
    """Of those that keep the last ones."""
    window_tokens: Count = 0
    """How many these keep."""
    state_bytes: Count = 0
    """What a request takes however long it is: layers that carry a state."""
    counts: Annotated[LayerCounts | None, Field(exclude_if=lambda counts: counts is None)] = None
    """How many layers there are of each sort; None: nobody told, as of GGUF files, or an older worker read the
    header."""
    width: Count = 0
    """Values of one token between two layers."""
    inner: Count = 0
    """Values of one token inside of a layer: of all experts that work on it."""
    vocabulary: Count = 0
    tensor_bytes: Annotated[dict[str, Count], Field(max_length=MOST_TENSOR_TYPES)] = {}
    """Bytes of the tensors by their type, as the files' headers name it: `BF16`; empty: the headers weren't read."""
    computed_in: str = Field(default="", max_length=32)
    """The type that the configuration names for it: `bfloat16`; empty: none."""
    fault: str = Field(default="", max_length=MOST_FAULT)
    """Why its cache can't be computed, a sentence with file and field; empty: it can."""

    def __hash__(self) -> int:
        """As of any other value, which a mapping among the fields would not give."""
        return hash((self.whole, self.windowed, self.window_tokens, frozenset(self.tensor_bytes.items()), self.fault))
